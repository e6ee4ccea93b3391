package bpf

import (
	"maps"
	"runtime"

	"github.com/cilium/ebpf"
)

// Pull are the programs of engine pull, over the maps of the Objects that they were loaded with. Those
// that the kernel refuses are nil, with the reason in Missing; RecordTask is there.
type Pull struct {
	RecordTask, RecordIdle, Recount *ebpf.Program
	Missing                         []Missing

	coll *ebpf.Collection
}

// LoadPull loads engine pull's programs beside o, configured as o was. Errors are of kind
// ErrUnsupported and contain the kernel's own reason.
func (o *Objects) LoadPull() (*Pull, error) {
	shared := maps.Clone(o.coll.Maps)
	maps.DeleteFunc(shared, func(name string, _ *ebpf.Map) bool { return name[0] == '.' }) // constants
	coll, missing, err := o.config.load(shared, "record_task", "record_idle", "recount")
	if err != nil {
		return nil, err
	}
	return &Pull{
		RecordTask: coll.Programs["record_task"], RecordIdle: coll.Programs["record_idle"], Recount: coll.Programs["recount"],
		Missing: missing, coll: coll,
	}, nil
}

// Close closes the programs.
func (p *Pull) Close() { p.coll.Close() }

// KeepAlive is Objects.KeepAlive for these.
func (p *Pull) KeepAlive() { runtime.KeepAlive(p.coll) }
