// Package waitgraph says who is stuck, and why: it joins the waits of a snapshot (package
// waits) into a graph of threads and resources, and finds deadlocks, chains that end in a
// culprit, convoys. It is pure: the same waits in any order give the same verdict.
package waitgraph
