package publish

import (
	"fmt"
	"os"
	"strings"
	"time"

	"stackshot/kcdata"
)

// FileName is the name of a snapshot that nobody named: host and time, UTC
// because the local zone is a file on a disk. Milliseconds tell captures apart.
func FileName(at time.Time, e kcdata.Envelope) string {
	host, err := os.Hostname() // uname, no file
	if err != nil {
		host = "unknown"
	}
	ext := ".kcdata"
	if e == kcdata.EnvelopeZstd {
		ext += ".zst" // a zstd frame around KCData
	}
	return fmt.Sprintf("stackshot-%s-%s%s", SafeName(host), at.UTC().Format("20060102T150405.000Z"), ext)
}

// SafeName keeps what needs no quoting anywhere.
func SafeName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '.' || r == '_' {
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 64)]
}
