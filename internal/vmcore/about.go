package vmcore

import (
	"fmt"
	"strconv"
)

// about is what a dump says of itself.
type about struct {
	format string
	arch   string
	page   int
	cpus   int
	info   map[string]string
	flaws  []error
}

// Format is "elf" or "kdump".
func (a *about) Format() string { return a.format }

// Arch is the machine's architecture as Go names it: "amd64" or "arm64".
func (a *about) Arch() string { return a.arch }

// PageSize is the size of the kernel's pages in bytes, as vmcoreinfo tells it. If it does not, it is the
// smallest size of the architecture, 4096.
func (a *about) PageSize() int { return a.page }

// CPUs is the number of CPUs whose registers the dump holds (notes NT_PRSTATUS).
func (a *about) CPUs() int { return a.cpus }

// Info is the text of vmcoreinfo, by key: "OSRELEASE", "KERNELOFFSET", "SYMBOL(_stext)". It is empty if the
// dump has none. Source: log_buf_vmcoreinfo_setup and arch_crash_save_vmcoreinfo in the kernel.
func (a *about) Info() map[string]string { return a.info }

// Flaws says what is wrong with the dump that does not keep its memory from being read: its writer ran
// out of space, its notes are damaged, segments have no physical address.
func (a *about) Flaws() []error { return a.flaws }

func (a *about) flaw(err error) { a.flaws = append(a.flaws, err) }

// takeNotes takes over what notes say. block is the unit of the dump's pages in bytes, 0 if it has none.
func (a *about) takeNotes(s *source, n *notes, block uint64) {
	a.cpus, a.info, a.page = n.cpus, n.info, smallestPage
	if a.info == nil {
		a.info = map[string]string{}
	}
	text, ok := a.info["PAGESIZE"]
	if !ok {
		return
	}
	size, err := strconv.ParseUint(text, 10, 32)
	switch {
	case err != nil || size != 4096 && size != 16384 && size != 65536 || a.arch == "amd64" && size != 4096:
		a.flaw(fmt.Errorf("%s: vmcoreinfo: no page of %s has %.20q bytes", s.path, a.arch, text))
	case block != 0 && size > block:
		a.flaw(fmt.Errorf("%s: vmcoreinfo: pages of %d bytes, and the dump has blocks of %d", s.path, size, block))
	default:
		a.page = int(size)
	}
}
