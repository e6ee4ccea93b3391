package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"stackshot/internal/foreign"
	"stackshot/internal/image"
	"stackshot/kcdata"
)

const (
	// maxPerfMap is the size of a perf map that is still read.
	maxPerfMap = 64 << 20
	// maxPerfLine is the longest line that counts; the rest of a longer one is
	// dropped.
	maxPerfLine = 4096
)

// ScanPerfMap reads the lines "START SIZE name" (hexadecimal) of a perf map and
// returns a Function for each of addrs that a line holds. If several lines hold it, the
// last one counts, because later code replaces earlier code. addrs ascend. The memory
// grows with addrs, not with the map; kept bounds the names. ScanPerfMap ignores all other lines.
func ScanPerfMap(r io.Reader, addrs []uint64, kept *texts) (map[uint64]Function, error) {
	hits := make([]Function, len(addrs)) // their names are not set yet
	br := bufio.NewReaderSize(r, maxPerfLine)
	var err error
	for err == nil {
		var line []byte
		line, err = br.ReadSlice('\n')
		if start, size, name, ok := parsePerfLine(line); ok {
			raw := ""
			i, _ := slices.BinarySearch(addrs, start)
			for ; i < len(addrs) && addrs[i]-start < size; i++ {
				if raw == "" {
					raw = kept.keep(string(name))
				}
				hits[i] = Function{Raw: raw, Start: start}
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) { // this overwrites line
			_, err = br.ReadSlice('\n')
		}
	}
	if err != io.EOF {
		return nil, err
	}
	out := make(map[uint64]Function)
	for i, f := range hits {
		if f.Name = kept.keep(Demangle(f.Raw)); f.Name != "" {
			out[addrs[i]] = f
		}
	}
	return out, nil
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

// parseHex takes a number with or without 0x: some writers have it.
func parseHex(b []byte) (uint64, error) {
	b = bytes.TrimPrefix(b, []byte("0x"))
	return strconv.ParseUint(string(b), 16, 64)
}

// perfMapPath is where perf(1) looks: the pid is that of the process's own namespace.
func perfMapPath(t *kcdata.Task) string {
	pid := t.ID
	for _, th := range t.Threads {
		if n := len(th.NS); th.ID == t.ID && n > 0 {
			pid = uint64(th.NS[n-1].Tid)
		}
	}
	return fmt.Sprintf("/tmp/perf-%d.map", pid)
}

// perfNames has the names of a process's perf map. Most programs have none: one that was not there at
// the capture, and that nobody can look for now, is nothing to miss.
func (r *Resolver) perfNames(j *job) (names, error) {
	s := j.sources[0]
	found, err := r.readPerfMap(j)
	if err == nil {
		return found, nil
	}
	_, closed := os.Readlink(s.Process.Path("root"))
	ended := errors.Is(err, image.ErrEnded) || errors.Is(closed, fs.ErrNotExist) // a zombie has no root
	switch {
	case s.absent && (ended || errors.Is(closed, fs.ErrPermission)), !s.listed && !ended && errors.Is(err, fs.ErrNotExist):
		return names{}, nil
	case ended:
		return nil, image.ErrEnded
	}
	return found, err
}

// readPerfMap reads it. Anybody could write such a file, so it counts only if it belongs to the user
// of the process, or to root.
func (r *Resolver) readPerfMap(j *job) (names, error) {
	s := j.sources[0]
	if err := s.Process.Alive(); err != nil {
		return nil, err
	}
	where := foreign.Where{Root: s.Process.Path("root"), Path: s.Mapping.Path, NoFollow: true, MaxSize: maxPerfMap, Check: s.owns}
	kept := newTexts(r.o.room(), j.names)
	v, err := r.files.LoadFrom(where, func(rd io.ReaderAt, size int64) (any, error) {
		if err := s.Process.Alive(); err != nil {
			return nil, err
		}
		return ScanPerfMap(io.NewSectionReader(rd, 0, min(size, maxPerfMap)), j.offs, kept)
	})
	if err != nil {
		return nil, err
	}
	out := names{}
	for addr, f := range v.(map[uint64]Function) {
		out[addr] = []kcdata.UserFunction{{Name: f.Name, Offset: addr - f.Start}}
	}
	return out, kept.err()
}

func (s *source) owns(st foreign.Stat) error {
	if st.UID != 0 && !slices.Contains(s.uids[:], st.UID) {
		return fmt.Errorf("%w: uid %d, the process has %d", foreign.ErrOwner, st.UID, s.uids[0])
	}
	return nil
}
