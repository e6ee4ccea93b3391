package image

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"stackshot/internal/procfs"
	"stackshot/kcdata"
)

// vdso is this process's own copy of the kernel's code for user mode: the same
// bytes in every process of the machine with the same word size.
var vdso = sync.OnceValues(func() ([]byte, error) {
	files := []procfs.File{{Name: "maps", Max: 16 << 20}}
	procfs.FS{}.Read("self", files)
	if files[0].Err != nil {
		return nil, files[0].Err
	}
	for m, err := range procfs.ParseMaps(files[0].Data, procfs.PermRead|procfs.PermExec) {
		if err != nil {
			return nil, err
		}
		if m.Path == "[vdso]" {
			return bytes.Clone(mapped(uintptr(m.Start), int(m.End-m.Start))), nil
		}
	}
	return nil, errors.New("this process has no [vdso]")
})

// mapped views memory that is not Go's. The address is not derived from a Go
// pointer, which vet takes for a mistake unless it passes through one.
func mapped(at uintptr, n int) []byte {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&at))
	return unsafe.Slice((*byte)(p), n)
}

// VDSO gives this machine's vDSO if m may be a mapping of it: by its size, and its
// build-id where that is known.
func VDSO(m *kcdata.Mapping) ([]byte, error) {
	b, err := vdso()
	if size := m.End - m.Start; err == nil && uint64(len(b)) != size {
		err = fmt.Errorf("%d bytes, this machine's has %d", size, len(b))
	}
	if err == nil && len(m.BuildID) > 0 {
		err = isBuild(string(m.BuildID), bytes.NewReader(b))
	}
	if err != nil {
		return nil, fmt.Errorf("[vdso]: %w", err)
	}
	return b, nil
}
