// Package host describes the machine: what the file says of it that does not change
// while it runs.
package host
