package bpf

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"

	"stackshot/kcdata"
)

// blocked_on is read only where it leads to a mutex: with CONFIG_DEBUG_MUTEXES older
// kernels have the waiter's record there.
func TestBlockedOnLeadsToAMutex(t *testing.T) {
	target := func(name string) *btf.Pointer { return &btf.Pointer{Target: &btf.Struct{Name: name, Size: 8}} }
	for _, c := range []struct {
		field string
		kind  btf.Type
		want  bool
	}{
		{"blocked_on", target("mutex"), true},
		{"blocked_on", target("mutex_waiter"), false},
		{"blocked_on", &btf.Int{Name: "long", Size: 8}, false},
		{"other", target("mutex"), false},
	} {
		b, err := btf.NewBuilder([]btf.Type{&btf.Struct{Name: "task_struct", Size: 8, Members: []btf.Member{{Name: c.field, Type: c.kind}}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := b.Marshal(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		types, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := (Waits{On: true}).sources(types)&kcdata.WaitHasBlockedOn != 0; got != c.want {
			t.Errorf("%s %v: read %v, want %v", c.field, c.kind, got, c.want)
		}
	}
}

func TestSlowPathKind(t *testing.T) {
	for name, want := range map[string]uint64{
		"__mutex_lock.constprop.0": kcdata.LockMutex, "__mutex_lock": kcdata.LockMutex, "rwsem_down_read_slowpath": kcdata.LockRWSemRead,
		"___down_common.isra.0": kcdata.LockSemaphore, "rwsem_down_write_slowpath.llvm.123": kcdata.LockRWSemWrite,
		"__mutex_lock.cold": kcdata.LockNone, "__mutex_lock.constprop.0.cold": kcdata.LockNone, "__mutex_lock.cold.5": kcdata.LockNone,
		"mutex_lock": kcdata.LockNone, "down": kcdata.LockNone, "": kcdata.LockNone,
	} {
		if got := SlowPathKind(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
