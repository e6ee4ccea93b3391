package topology

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// Kind is the class of a CPU. The values are those of the file format.
type Kind uint8

// The kinds: all alike, efficiency core, performance core.
const (
	KindSMP Kind = 0
	KindE   Kind = 1
	KindP   Kind = 2
)

func (k Kind) String() string {
	switch k {
	case KindE:
		return "E"
	case KindP:
		return "P"
	}
	return "SMP"
}

// CPU is one present CPU. Constant after Read; --cpu-class makes a new Topology.
type CPU struct {
	ID       int
	Online   bool
	Cluster  int    // index in Topology.Clusters; -1 while offline
	Kind     Kind   // KindSMP while offline
	Capacity uint32 // cpu_capacity, 1024 for the largest; 0: not known
	Package  int    // physical_package_id; -1: not known

	Isolation Reason // Isolated, NohzFull, Partition: why it is left running unless --stop-isolated

	core      []int // online CPUs of its core
	siblings  []int // online CPUs of its cluster_cpus_list; nil: none
	lastLevel []int // online CPUs of its last-level cache; nil: not known
}

// Cluster is a set of online CPUs with one arena between them.
type Cluster struct {
	ID   int // its index
	CPUs []int
	Kind Kind
}

// Topology is the machine's CPUs. Not changed after Read, so safe to share.
type Topology struct {
	CPUs     []CPU // every present CPU, ascending
	Clusters []Cluster
	AMP      bool // both P and E cores are online
}

// ErrNoOnline says that neither /sys nor /proc names an online CPU.
var ErrNoOnline = errors.New("no online CPU found in /sys/devices/system/cpu/online or /proc/stat")

// Machine reads the machine this process runs on.
func Machine() (*Topology, error) {
	return Read(os.DirFS("/sys"), os.DirFS("/proc"))
}

// Read reads a machine from file systems rooted at /sys and /proc. A file that the
// kernel lacks is no error. A file of another form is one, and the error names it.
func Read(sys, proc fs.FS) (*Topology, error) {
	r := reader{sys: sys, proc: proc}
	t := &Topology{CPUs: r.cpus()}
	r.kinds(t.CPUs)
	if r.err != nil {
		return nil, r.err
	}
	if len(t.Online()) == 0 {
		return nil, ErrNoOnline
	}
	t.settle()
	return t, nil
}

// Online gives the numbers of the online CPUs, ascending.
func (t *Topology) Online() []int {
	var out []int
	for i := range t.CPUs {
		if t.CPUs[i].Online {
			out = append(out, t.CPUs[i].ID)
		}
	}
	return out
}

// CPU finds a present CPU by its number.
func (t *Topology) CPU(id int) (CPU, bool) {
	i, ok := slices.BinarySearchFunc(t.CPUs, id, func(c CPU, id int) int { return c.ID - id })
	if !ok {
		return CPU{}, false
	}
	return t.CPUs[i], true
}

// settle sets AMP and the clusters from the kinds. If all online CPUs are of one kind,
// they become KindSMP.
func (t *Topology) settle() {
	var seen [3]bool
	for i := range t.CPUs {
		if t.CPUs[i].Online {
			seen[t.CPUs[i].Kind] = true
		}
	}
	t.AMP = seen[KindE] && seen[KindP]
	if !t.AMP {
		for i := range t.CPUs {
			t.CPUs[i].Kind = KindSMP
		}
	}
	t.cluster()
}
