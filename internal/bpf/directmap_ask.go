package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// asked is what the programs of directmap.bpf.c are asked, and their answer.
type asked = mapObjectAsk

const maxAsked = len(asked{}.Addr)

// asker runs one program of directmap.bpf.c over the calling thread.
type asker struct {
	coll *ebpf.Collection
	prog *ebpf.Program
	last asked
}

// newAsker loads a program. m is the map by which it walks page tables; nil: it walks
// none.
func newAsker(program string, m *DirectMap) (*asker, error) {
	spec, err := loadMapObject()
	if err != nil {
		return nil, fmt.Errorf("committed object: %w", err)
	}
	for name := range spec.Programs {
		if name != program {
			delete(spec.Programs, name)
		}
	}
	if err := setValues(spec, map[string]uint32{"cfg_page_shift": pageShift()}); err != nil {
		return nil, err
	}
	if m != nil {
		if err := setDirectMap(spec, m); err != nil {
			return nil, err
		}
	}
	coll, err := newCollection(spec, nil)
	if err != nil {
		return nil, &DirectMapError{"program " + program, rights(err)}
	}
	return &asker{coll: coll, prog: coll.Programs[program]}, nil
}

func (k *asker) close() { k.coll.Close() }

func (k *asker) pgd() uint64 { return k.last.Pgd }

// words reads any number of words of the kernel's memory, or of our own.
func (k *asker) words(addrs []uint64) ([]word, error) {
	var out []word
	for len(addrs) > 0 {
		n := min(len(addrs), maxAsked)
		k.last.N, k.last.Pgd = uint32(n), 0
		copy(k.last.Addr[:], addrs[:n])
		addrs = addrs[n:]
		if err := k.run(); err != nil {
			return nil, err
		}
		for i := range n {
			out = append(out, word{k.last.Value[i], k.last.Why[i]})
		}
	}
	return out, nil
}

// run runs the program once, over this thread, and fetches its answer.
func (k *asker) run() error {
	m := k.coll.Maps["asks"]
	if err := m.Put(uint32(0), &k.last); err != nil {
		return &DirectMapError{"ask", err}
	}
	if errno := k.pass(); errno != 0 {
		return &DirectMapError{"task iterator over this thread", errno}
	}
	if err := m.Lookup(uint32(0), &k.last); err != nil {
		return &DirectMapError{"ask", err}
	}
	if k.last.Pgd == 0 {
		return &DirectMapError{What: "the task iterator did not show this thread"}
	}
	return nil
}

func (k *asker) pass() unix.Errno {
	var it Iterator
	var none [16]byte
	scope := TaskScope(uint32(unix.Getpid()))
	if errno := it.Open(k.prog.FD(), &scope); errno != 0 {
		return errno
	}
	defer it.Close()
	_, errno := it.Read(none[:])
	return errno
}
