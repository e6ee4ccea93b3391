package procfs

import "bytes"

// labelLines puts "label " before every line.
func labelLines(dst []byte, label string, text []byte) []byte {
	for line := range bytes.Lines(text) {
		dst = append(dst, label...)
		dst = append(dst, ' ')
		dst = append(dst, line...)
	}
	return dst
}
