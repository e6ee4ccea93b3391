package bpf

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// kernelTypes decodes the kernel's type information once for all that is loaded. What it keeps is
// some 2 MB.
var kernelTypes = btf.NewCache()

// newCollection loads programs and maps; those given it shares. Verifier logs are off: to produce
// them takes long, and nobody reads them here.
func newCollection(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map) (*ebpf.Collection, error) {
	return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{LogDisabled: true}, MapReplacements: shared, Cache: kernelTypes,
	})
}
