package host

import (
	"slices"

	"stackshot/internal/panicregion"
	"stackshot/internal/procfs"
)

// Region fills in what a region's description says of the machine.
func (h *Host) Region(d *panicregion.Description) {
	d.Hostname, d.Release, d.Version, d.Arch = h.Hostname, h.Release, h.Version, h.Arch
	d.BootID, d.Cmdline, d.KernelBuild = h.BootID, h.Cmdline, slices.Clone(h.KernelBuild)
	d.PidNS, d.FirstNS, d.StackDepth, d.PageSize = h.PidNS, h.FirstNS, h.Depth, h.PageSize
	d.Modules = nil
	for _, m := range h.Modules() {
		d.Modules = append(d.Modules, panicregion.Module(m))
	}
	d.Symbols, d.KallsymsWhy = "", h.KallsymsWhy
	if h.Kallsyms != nil {
		d.Symbols = h.Kallsyms.TextOnly()
	}
}

// FromRegion is the machine that a description is of. It reads nothing of the machine that it
// runs on.
func FromRegion(d *panicregion.Description) *Host {
	h := &Host{
		Hostname: d.Hostname, Release: d.Release, Version: d.Version, Arch: d.Arch, BootID: d.BootID, Cmdline: d.Cmdline,
		KernelBuild: d.KernelBuild, PidNS: d.PidNS, FirstNS: d.FirstNS, Depth: d.StackDepth, PageSize: d.PageSize, KallsymsWhy: d.KallsymsWhy, dead: true,
	}
	for _, m := range d.Modules {
		h.mods = append(h.mods, procfs.Module(m))
	}
	if d.Symbols == "" {
		return h
	}
	k, err := procfs.ParseKallsyms(d.Symbols)
	if err != nil {
		h.KallsymsWhy = "the symbols in the description: " + err.Error()
		return h
	}
	h.Kallsyms = k
	return h
}
