package bpf

import (
	"errors"
	"unsafe"

	"stackshot/kcdata"
)

// What the programs write (ends_types.h, end_out and fuse_out).
const (
	outEnd  = 1
	outFUSE = 2
)

type endOut struct {
	What, Index uint32
	End         kcdata.LinuxEnd
}

type fuseOut struct {
	What, _ uint32
	FUSE    kcdata.LinuxFUSE
}

// foundParts is what the programs wrote.
type foundParts struct {
	ends []endOut
	fuse []kcdata.LinuxFUSE
}

var errTorn = errors.New("the pass over open files wrote what it does not write")

func (f *foundParts) parse(b []byte) error {
	for len(b) > 0 {
		if len(b) < 8 {
			return errTorn
		}
		var e endOut
		var r fuseOut
		switch what := *(*uint32)(unsafe.Pointer(&b[0])); {
		case what == outEnd && len(b) >= int(unsafe.Sizeof(e)):
			b = b[copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), b):]
			f.ends = append(f.ends, e)
		case what == outFUSE && len(b) >= int(unsafe.Sizeof(r)):
			b = b[copy(unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r)), b):]
			f.fuse = append(f.fuse, r.FUSE)
		default:
			return errTorn
		}
	}
	return nil
}
