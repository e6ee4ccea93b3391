// Package account says how a capture went and what it is of, from the records of its file:
// the machine, the pause, the CPUs, how much of one instant the picture is, what is
// missing from it. Each record is said here once for all commands, as text and as JSON. The
// report says a record in brief; `stackshot latency` in full.
//
// It is made of pure functions of a decoded file. Missing is never zero, and no name
// reaches the output raw (show.Clean).
package account
