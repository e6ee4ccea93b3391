//go:build race

package waitgraph

// The detector makes a million threads take minutes, and there is no concurrency here.
func init() { raced = true }
