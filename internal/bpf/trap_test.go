package bpf

import (
	"errors"
	"os"
	"testing"
)

// The trap is far below the million instructions that a verifier walks at most.
func TestTrapLoads(t *testing.T) {
	o, err := Load(Config{CPUs: 2, SelfTgid: uint32(os.Getpid())})
	if errors.Is(err, ErrUnsupported) && os.Getenv("STACKSHOT_REQUIRE_BPF") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for _, cfg := range []TrapConfig{{Bytes: 4096, Items: 1}, {Bytes: 16 << 20, Items: 65536}, {Bytes: 256 << 20, Items: 1 << 20}} {
		tr, err := o.LoadTrap(cfg)
		if err != nil {
			t.Fatalf("%+v: %v", cfg, err)
		}
		if n := tr.Instructions(); n > 100_000 {
			t.Errorf("%+v: %d instructions verified", cfg, n)
		} else {
			t.Logf("%+v: %d instructions verified", cfg, n)
		}
		if len(tr.Region) != cfg.Bytes || len(tr.Parts) != cfg.Items {
			t.Errorf("%+v: region of %d bytes, %d parts", cfg, len(tr.Region), len(tr.Parts))
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
}
