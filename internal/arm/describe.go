package arm

import (
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"stackshot/internal/bpf"
	"stackshot/internal/clock"
	"stackshot/internal/host"
	"stackshot/internal/panicregion"
	"stackshot/internal/procfs"
	"stackshot/internal/topology"
)

// prepare describes the machine, and configures the programs as a capture's are.
func (a *Armed) prepare() (*panicregion.Description, bpf.Config, error) {
	o := &a.options
	memory, err := bpf.FindDirectMap()
	if err != nil {
		memory = nil
		a.warn("no user stacks, no mappings and no words of futexes: %v", err)
	}
	h := host.Describe(procfs.FS{}, o.Redact)
	if h.KallsymsWhy != "" {
		a.warn("kernel frames stay numbers: %s", h.KallsymsWhy)
	}
	cpus := 0
	for _, c := range a.topo.CPUs {
		cpus = max(cpus, c.ID+1)
	}
	cfg := bpf.Config{
		CPUs: cpus, SelfTgid: uint32(os.Getpid()), Redact: o.Redact, User: o.user(memory), Waits: h.Waits(o.Wait, memory != nil),
	}
	a.userStacks = cfg.User.Mode != bpf.UserOff
	return a.description(h), cfg, nil
}

// description is what the region says of the machine now.
func (a *Armed) description(h *host.Host) *panicregion.Description {
	m := clock.Now()
	d := &panicregion.Description{
		Tool: a.options.Version, BootEpochNs: m.Realtime - m.Boottime, CPUs: cpusOf(a.topo),
		Redact: a.options.Redact, UserStacks: a.userStacks, SelfTgid: uint32(os.Getpid()),
	}
	h.Region(d)
	a.static.TextAddr, a.static.BuildID = h.TextAddr(), h.KernelBuild
	return d
}

// loaded adds what is known when the programs are loaded.
func (a *Armed) loaded(d *panicregion.Description) {
	d.WaitSources, d.FileSources, d.Hooks = a.panic.WaitSources, a.panic.FileSources, nil
	for _, h := range a.Hooks {
		if h.Err == nil {
			d.Hooks = append(d.Hooks, h.Function)
		}
	}
}

func cpusOf(t *topology.Topology) (list []panicregion.CPU) {
	for _, c := range t.CPUs {
		if c.Online {
			list = append(list, panicregion.CPU{CPU: uint32(c.ID), Kind: uint32(c.Kind), Cluster: uint32(c.Cluster)})
		}
	}
	return list
}

// writeRegion writes list, description and head, for the first time.
func (a *Armed) writeRegion(d *panicregion.Description) error {
	s := &a.static
	s.Kind, s.Arch, s.Region = panicregion.KindPanic, machine(), since()
	s.Pages, s.ListPages = uint64(a.layout.pages()), uint32(a.layout.lists)
	var err error
	if s.BootID, err = bootBytes(d.BootID); err != nil {
		return err
	}
	phys, err := panicregion.Frames(a.panic.Region[:a.layout.bytes()])
	if err != nil {
		return err
	}
	if err := panicregion.PutList(a.panic.Region[panicregion.PageSize:], s, panicregion.Runs(phys)); err != nil {
		return err
	}
	return a.describe(d)
}

// errOutgrown says that a description has no room.
var errOutgrown = errors.New("the description of the machine has outgrown its room")

// describe writes a description into the room that the head does not name, then a head that
// names it.
func (a *Armed) describe(d *panicregion.Description) error {
	a.loaded(d)
	packed, err := d.Pack()
	if err != nil {
		return err
	}
	if len(packed) > a.layout.room {
		return fmt.Errorf("%w: %d bytes, %d are there", errOutgrown, len(packed), a.layout.room)
	}
	s := &a.static
	s.Generation++
	s.Written = clock.Now().Realtime
	off := a.layout.rooms[s.Generation%2]
	clear(a.panic.Region[off+copy(a.panic.Region[off:], packed) : off+a.layout.room])
	s.Sections = []panicregion.Section{
		{Kind: panicregion.SectionDescription, Sum: panicregion.Sum(packed), Off: uint64(off), Len: uint64(len(packed))},
		{Kind: panicregion.SectionRecords, Off: uint64(a.layout.at), Len: uint64(a.layout.records)},
	}
	return panicregion.PutStatic(a.panic.Region[:panicregion.PageSize], s)
}

// refresh describes the machine anew. The old head and its description stay until the new ones
// are whole, and after an error.
func (a *Armed) refresh() error {
	t, err := topology.Machine()
	if err != nil {
		return err
	}
	a.topo = t
	h := host.Describe(procfs.FS{}, a.options.Redact)
	d := a.description(h)
	err = a.describe(d)
	debug.FreeOSMemory() // the symbols took some 50 MB, and nobody needs them again soon
	return err
}

// FramesFile is the head and the list, by which extraction finds the region without a
// search. Neither the frames nor the region's number change while the machine is armed.
func (a *Armed) FramesFile() []byte {
	return append([]byte(nil), a.panic.Region[:(1+a.layout.lists)*panicregion.PageSize]...)
}

// BootID is this boot's, as the kernel writes it.
func (a *Armed) BootID() string {
	b := hex.EncodeToString(a.static.BootID[:])
	return strings.Join([]string{b[:8], b[8:12], b[12:16], b[16:20], b[20:]}, "-")
}

func bootBytes(text string) (id [16]byte, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(text), "-", ""))
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("/proc/sys/kernel/random/boot_id: %.80q", text)
	}
	return [16]byte(b), nil
}

// machine is this architecture as e_machine of ELF.
func machine() uint32 {
	if runtime.GOARCH == "arm64" {
		return uint32(elf.EM_AARCH64)
	}
	return uint32(elf.EM_X86_64)
}

func (a *Armed) warn(format string, args ...any) {
	a.Warnings = append(a.Warnings, fmt.Sprintf(format, args...))
}
