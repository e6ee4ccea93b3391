// Package host is what the file says of the machine and does not change while it runs.
package host
