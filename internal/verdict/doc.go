// Package verdict says in words, and as JSON objects, what threads wait for and what hangs. The
// report, the capture and `stackshot hang` share it, so that all say the same.
//
// It is pure: a function of a decoded snapshot and of the verdict on it (package waitgraph).
//
//	V1  A sentence says "Deadlock" only of a Deadlock that is sure. All that is likely has
//	    "probably" in it.
//	V2  No name reaches a text raw, and none takes more than maxName cells.
//	V3  A list in a sentence is bounded, and what it leaves out is counted.
package verdict
