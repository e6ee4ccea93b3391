package bpf

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// running has the type information of the running kernel and its modules.
var running = typeCache{dir: "/sys/kernel/btf"}

// typeCache decodes type information once for all that is loaded, until modules come or go: a
// btf.Cache lists them once only. What it keeps are a few MB.
type typeCache struct {
	dir string

	mu    sync.Mutex
	files []string // by mu: what cache is of
	cache *btf.Cache
}

// now is the cache for the modules that are loaded now.
func (c *typeCache) now() *btf.Cache {
	var files []string
	list, _ := os.ReadDir(c.dir) // without it the cache itself says what is missing
	for _, e := range list {
		if info, err := e.Info(); err == nil {
			files = append(files, fmt.Sprint(e.Name(), info.Size(), info.ModTime())) // a module that is loaded anew has a new file
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cache == nil || !slices.Equal(files, c.files) {
		c.files, c.cache = files, btf.NewCache()
	}
	return c.cache
}

// kernelTypes are those of the kernel alone.
func kernelTypes() (*btf.Spec, error) { return running.now().Kernel() }

// newCollection loads programs and maps; those given it shares. Verifier logs are off: to produce
// them takes long, and nobody reads them here.
func newCollection(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map) (*ebpf.Collection, error) {
	return ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		Programs: ebpf.ProgramOptions{LogDisabled: true}, MapReplacements: shared, Cache: running.now(),
	})
}
