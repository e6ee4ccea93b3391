// Package model says what a thread is doing: its state in words, how long it had been in
// that state, which frames of its kernel stack tell something, and the names of flags. All
// readers and writers of thread records share it, so that each of these facts stands once.
//
// The package is pure: it reads records and names, and knows no output format. The bits
// themselves stand in package kcdata, beside their records.
package model
