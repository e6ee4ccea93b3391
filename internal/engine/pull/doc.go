// Package pull is the engine in which the workers hold their CPUs themselves, by their
// priority, and read a BPF iterator for each task from the queues. The main worker takes
// the census, and reads all threads again when all is recorded.
package pull
