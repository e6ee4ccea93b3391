// Package stacks turns what a stop took of threads' user sides (registers,
// frame-pointer chain, pieces of the stack) into their user stacks: by a capture
// right after the release, and again from a file in which they were kept, here or
// on another machine, as often as one likes.
//
//	Found     what was taken of one thread, and where it lies
//	Unwinder  ──► package unwind over package image ──► USER_STACKLR64, LINUX_USER_HOW
//	Redo      the same for a whole file
package stacks
