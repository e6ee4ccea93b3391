package bpf

import (
	"os"
	"testing"

	"stackshot/internal/testneed"
)

// requireTrap ends a test where the kernel itself says that it has not what the
// trap needs. That the trap is refused all the same is a failure.
func requireTrap(t *testing.T) {
	t.Helper()
	if p, lacking := FirstMissing(NeedTrap); lacking && (p.Lacks() || !testneed.All()) {
		t.Skip(p)
	}
}

// The trap loads in every size, in few instructions, at the level it states.
func TestTrapLoads(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	requireTrap(t)
	o, err := Load(Config{CPUs: 2, SelfTgid: uint32(os.Getpid())})
	mustLoad(t, err)
	defer o.Close()
	for _, cfg := range []TrapConfig{{Bytes: 4096, Items: 1}, {Bytes: 16 << 20, Items: 65536}, {Bytes: 64 << 20, Items: 1 << 17}} {
		tr, err := o.LoadTrap(cfg)
		if err != nil {
			t.Fatalf("%+v: %v", cfg, err)
		}
		countAll(t, tr.coll.Programs)
		if len(tr.Region) != cfg.Bytes || len(tr.Parts) != cfg.Items {
			t.Errorf("%+v: region of %d bytes, %d parts", cfg, len(tr.Region), len(tr.Parts))
		}
		wantLevel(t, tr.Level())
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The level that a loaded trap states is what the verifier grants.
func wantLevel(t *testing.T, level uint32) {
	t.Helper()
	for need, bit := range map[Need]uint32{NeedPreemptOff: PreemptionOff, NeedIRQOff: InterruptsOff} {
		if p, lacking := FirstMissing(need); lacking == (level&bit != 0) {
			t.Errorf("level %b, lacking %v", level, p)
		}
	}
}
