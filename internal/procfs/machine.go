package procfs

import "bytes"

// ParseBootTime takes btime out of /proc/stat: seconds since the epoch.
func ParseBootTime(b []byte) (uint64, error) {
	for line := range bytes.Lines(b) {
		value, ok := bytes.CutPrefix(line, []byte("btime "))
		if !ok {
			continue
		}
		if n, ok := parseUint(bytes.TrimSpace(value)); ok {
			return n, nil
		}
		return 0, syntaxError("/proc/stat", "btime", value)
	}
	return 0, syntaxError("/proc/stat", "btime", nil)
}

// labelLines puts "label " before every line.
func labelLines(dst []byte, label string, text []byte) []byte {
	for line := range bytes.Lines(text) {
		dst = append(dst, label...)
		dst = append(dst, ' ')
		dst = append(dst, line...)
	}
	return dst
}
