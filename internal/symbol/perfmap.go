package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
)

const (
	// maxPerfMap is the size of a perf map that is still read.
	maxPerfMap = 64 << 20
	// maxPerfLine is the longest line that counts; the rest of a longer one is
	// dropped.
	maxPerfLine = 4096
)

// ScanPerfMap reads the lines "START SIZE name" (hexadecimal) of a perf map and
// returns a Function for each of addrs that one of them holds; of several the
// last, for code is replaced by later code. addrs ascend. What it keeps grows
// with addrs, not with the map. Lines that are none are passed over.
func ScanPerfMap(r io.Reader, addrs []uint64) (map[uint64]Function, error) {
	type hit struct {
		start uint64
		name  []byte
	}
	hits := make([]hit, len(addrs))
	br := bufio.NewReaderSize(r, maxPerfLine)
	var err error
	for err == nil {
		var line []byte
		line, err = br.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			err = skipLine(br)
		}
		start, size, name, ok := parsePerfLine(line)
		if !ok {
			continue
		}
		i, _ := slices.BinarySearch(addrs, start)
		for ; i < len(addrs) && addrs[i]-start < size; i++ {
			hits[i] = hit{start, append(hits[i].name[:0], name...)}
		}
	}
	if err != io.EOF {
		return nil, err
	}
	out := make(map[uint64]Function)
	for i, h := range hits {
		if len(h.name) > 0 {
			raw := string(h.name)
			out[addrs[i]] = Function{raw, Demangle(raw), h.start}
		}
	}
	return out, nil
}

func skipLine(br *bufio.Reader) error {
	for {
		_, err := br.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func parsePerfLine(line []byte) (start, size uint64, name []byte, ok bool) {
	line = bytes.TrimRight(line, "\r\n")
	first, rest, ok1 := bytes.Cut(line, []byte{' '})
	second, name, ok2 := bytes.Cut(rest, []byte{' '})
	if !ok1 || !ok2 || len(name) == 0 {
		return 0, 0, nil, false
	}
	start, err1 := parseHex(first)
	size, err2 := parseHex(second)
	return start, size, name, err1 == nil && err2 == nil && size > 0
}

// parseHex takes a number with and without 0x: the writers do not agree.
func parseHex(b []byte) (uint64, error) {
	b = bytes.TrimPrefix(b, []byte("0x"))
	return strconv.ParseUint(string(b), 16, 64)
}
