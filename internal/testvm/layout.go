package testvm

import (
	"fmt"
	"slices"
	"strings"

	"stackshot/internal/testvm/wire"
)

// Layout is the shape of a guest's machine and how its kernel is told to use
// it. The zero Layout is an ordinary machine.
type Layout struct {
	Name string
	What string // one line for -help
	Arch string // only this architecture; empty: any

	CPUs     int    // 0: the caller's
	Topology string // the rest of QEMU's -smp
	CPU      string // QEMU's -cpu; empty: the architecture's usual
	Append   string // to the kernel's command line
	Setup    wire.Setup
	// BigLittle: the device tree says that the clusters differ.
	BigLittle bool
	NoBPF     bool // the kernel refuses it to everybody
	// Tests are those that this shape decides, by what their names begin with after
	// "Test": what the matrix runs here, beside Matrix.Narrow.
	Tests []string
}

// Layouts are all that have a name, in the order of the matrix.
var Layouts = []Layout{
	{Name: "sockets2", What: "8 CPUs in two sockets", CPUs: 8, Topology: "sockets=2,cores=4,threads=1",
		Tests: []string{"Spill", "SectionIsSame"}},
	{Name: "llc2", What: "8 CPUs in one socket with two last-level caches", Arch: "amd64", CPUs: 8,
		// With -cpu max QEMU 7.2 gives every cache the wrong id.
		Topology: "sockets=1,dies=2,cores=2,threads=2", CPU: "Skylake-Server",
		Tests: []string{"Clusters", "Spill", "SectionIsSame"}},
	{Name: "maxcpus1", What: "2 CPUs, one of them never started", CPUs: 2, Append: "maxcpus=1",
		Tests: []string{"OneCPU", "OfflineCPU", "SectionIsSame"}},
	{Name: "isolcpus", What: "4 CPUs, CPU 1 isolated from the scheduler", CPUs: 4, Append: "isolcpus=1",
		Tests: []string{"IsolatedCPU", "PAndEClasses"}},
	{Name: "nohz_full", What: "4 CPUs, CPU 1 without a tick", CPUs: 4, Append: "nohz_full=1",
		Tests: []string{"IsolatedCPU"}},
	{Name: "offline", What: "4 CPUs, CPU 1 offline", CPUs: 4, Setup: wire.Setup{Offline: []int{1}},
		Tests: []string{"OfflineCPU", "PAndEClasses"}},
	{Name: "kptr", What: "kernel.kptr_restrict=2", CPUs: 2, Setup: wire.Setup{Sysctl: map[string]string{"kernel/kptr_restrict": "2"}},
		Tests: []string{"HiddenSymbols", "KallsymsReal"}},
	{Name: "nofifo", What: "SCHED_FIFO refused: no CAP_SYS_NICE, RLIMIT_RTPRIO 0", CPUs: 2, Setup: wire.Setup{NoFIFO: true},
		Tests: []string{"WithoutFIFO", "FIFORefused"}},
	{Name: "lockdown", What: "lockdown=confidentiality: no BPF, no tracefs", CPUs: 2, Append: "lockdown=confidentiality", NoBPF: true,
		Tests: []string{"LockedDown", "NoBTF"}},
	{Name: "jiffies", What: "2 CPUs whose clock is the tick", Arch: "amd64", CPUs: 2, Append: "nohz=off highres=off clocksource=jiffies",
		Tests: []string{"Invariant2Jiffies", "IRQOffBound", "Invariant2PauseIsBound"}},
	{Name: "biglittle", What: "8 CPUs in two clusters with capacities 1024 and 446", Arch: "arm64", CPUs: 8,
		Topology: "sockets=1,clusters=2,cores=4,threads=1", CPU: "cortex-a57", BigLittle: true,
		Tests: []string{"PAndE", "Clusters", "Spill", "SectionIsSame", "OneLargeTask"}},
}

// LayoutNamed finds one; the empty name is the ordinary machine.
func LayoutNamed(name, arch string) (Layout, error) {
	if name == "" {
		return Layout{}, nil
	}
	i := slices.IndexFunc(Layouts, func(l Layout) bool { return l.Name == name })
	if i < 0 {
		return Layout{}, fmt.Errorf("no layout %q; there are %s", name, strings.Join(layoutNames(), ", "))
	}
	if l := Layouts[i]; l.Arch == "" || l.Arch == arch {
		return l, nil
	}
	return Layout{}, fmt.Errorf("layout %s is for %s, not %s", name, Layouts[i].Arch, arch)
}

func layoutNames() []string {
	var names []string
	for _, l := range Layouts {
		names = append(names, l.Name)
	}
	return names
}
