package bpf

import (
	"github.com/cilium/ebpf/btf"
)

// EndTypes says what the pass over open files can follow on this kernel, by its type
// information and that of its modules.
type EndTypes struct {
	Unix        bool // the other ends of unix sockets
	FUSE        bool // connections of FUSE and their requests
	Userfaultfd bool // whose memory a userfaultfd serves
}

// KnownEndTypes asks the kernel. A module that is not loaded has no type information, and
// nobody uses it. Errors: there is no type information at all.
func KnownEndTypes() (EndTypes, error) {
	kernel, err := kernelTypes()
	if err != nil {
		return EndTypes{}, err
	}
	return EndTypes{
		Unix: typeKnown(kernel, "unix_sock", "unix"), FUSE: typeKnown(kernel, "fuse_req", "fuse"),
		Userfaultfd: typeKnown(kernel, "userfaultfd_ctx", ""),
	}, nil
}

func typeKnown(kernel *btf.Spec, name, module string) bool {
	var s *btf.Struct
	if kernel.TypeByName(name, &s) == nil {
		return true
	}
	types := moduleTypes(module)
	return types != nil && types.TypeByName(name, &s) == nil
}
