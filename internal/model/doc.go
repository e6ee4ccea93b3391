// Package model says what a thread is doing: its state in words, how long it had been in
// it, which frames of its kernel stack tell something, and what flags are called. It holds
// what all readers and writers of thread records agree on, each fact once.
//
// It is pure: it reads records and names, and knows no output format. The bits themselves
// stand in package kcdata, beside their records.
package model
