// Package account describes a capture from the records of its file: the machine, the pause,
// the CPUs, how close the picture is to one instant, what is missing from it. The description
// of each record, as text and as JSON, stands here once for all commands. The report describes
// a record in brief, `stackshot latency` in full.
//
// The package consists of pure functions of a decoded file. A missing value is not a zero,
// and no name reaches the output raw (show.Clean).
package account
