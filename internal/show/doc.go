// Package show makes the content of a snapshot fit to be read: names without
// control characters, durations and sizes with as many digits as people read,
// lines that fit a terminal, JSON objects without missing members, errors that do not
// name a path twice. All reports share it; it knows no file format and no record.
package show
