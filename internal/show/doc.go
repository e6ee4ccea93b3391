// Package show makes what a snapshot holds fit to be read: names without
// control characters, durations and sizes with as many digits as anybody reads,
// lines that fit a terminal, errors that do not say a path twice. It is what all
// reports share; it knows no format and no record.
package show
