// Package hangscenes is what a person on call finds: machines that hang or are slow, made for
// real, and what the first screen must say of each. It is for tests only. The processes are
// those of [stackshot/internal/userlab] and [stackshot/internal/testtask].
//
//	All ──Start──► Standing: whose pids, which words ──Wrong──► what the screen lacks
//
// A scene ends with its test: processes by their pids, then its mounts, devices and control
// groups. What takes CPU time ends by itself too (Life).
package hangscenes
