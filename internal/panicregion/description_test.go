package panicregion

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stackshot/internal/testheap"
)

func someDescription() *Description {
	var symbols strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&symbols, "%x t function_%d\n", 0xffffffff81000000+uint64(i)*64, i)
	}
	return &Description{Tool: "v1", Hostname: "h", BootID: "b", KernelBuild: []byte{1, 2}, PageSize: 4096, Modules: []Module{{"nfs", 1, 2, []byte{3}}},
		CPUs: []CPU{{0, 1, 2}, {1, 1, 2}}, Hooks: []string{"vpanic"}, Symbols: symbols.String()}
}

func TestDescriptionRoundTrip(t *testing.T) {
	d := someDescription()
	b, err := d.Pack()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Unpack(b); err != nil || !reflect.DeepEqual(got, d) {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(b) > len(d.Symbols)/4 {
		t.Errorf("%d bytes packed to %d", len(d.Symbols), len(b))
	}
	for n := range len(b) - 1 { // cut anywhere
		if _, err := Unpack(b[:n]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	d.Symbols = strings.Repeat("x", MaxDescription)
	if _, err := d.Pack(); err == nil {
		t.Error("a description beyond the limit is packed")
	}
}

// A frame that unpacks to a gigabyte is refused in the memory of the limit.
func TestDescriptionBomb(t *testing.T) {
	var bomb bytes.Buffer
	z, _ := zstd.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	z.Write([]byte{2, 0, 0, 0, '{', '}'})
	for range 1 << 10 {
		z.Write(zeros)
	}
	z.Close()
	testheap.Bound(t, 5*MaxDescription, "a frame of a gigabyte", func() {
		if _, err := Unpack(bomb.Bytes()); !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
}

func FuzzUnpack(f *testing.F) {
	b, _ := someDescription().Pack()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := Unpack(b); err == nil && len(d.Symbols) > MaxDescription || err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
}

// JSON of the most modules and CPUs that fit takes memory that a capture kernel has; of more it is refused.
func TestDescriptionOfManyModules(t *testing.T) {
	for _, what := range []string{"Modules", "CPUs"} {
		for n, want := range map[int]error{maxObjects - 1: nil, maxObjects: ErrDamaged, maxJSON/3 - 100: ErrDamaged} {
			text := `{"` + what + `":[{}` + strings.Repeat(",{}", n-1) + `]}`
			var packed bytes.Buffer
			z, _ := zstd.NewWriter(&packed)
			z.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(text))))
			z.Write([]byte(text))
			z.Close()
			testheap.Bound(t, 48<<20, what, func() {
				if _, err := Unpack(packed.Bytes()); !errors.Is(err, want) {
					t.Errorf("%d %s: %v", n, what, err)
				}
			})
		}
	}
}
