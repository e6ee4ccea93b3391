package vmcore

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
)

// benchPages is a machine's memory as it is: a quarter zeros, the rest between text and noise.
func benchImage(b *testing.B) *image {
	r := rng(b, 1)
	m := &image{page: 4096}
	for range 16384 {
		m.add(held, randomPage(r, m.page))
	}
	return m
}

// A pass over all pages of a file in the page cache; MB/s are of the machine's memory.
func BenchmarkPages(b *testing.B) {
	m := benchImage(b)
	f := &elfFile{machine: elf.EM_X86_64}
	f.add(0, len(m.data)*m.page, bytes.Join(m.data, nil))
	for name, file := range map[string][]byte{
		"elf": f.bytes(), "raw": kdumpOf(m, 0).bytes(b), "zlib": kdumpOf(m, byZlib).bytes(b),
		"snappy": kdumpOf(m, bySnappy).bytes(b), "zstd": kdumpOf(m, byZstd).bytes(b),
	} {
		b.Run(name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "core")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				b.Fatal(err)
			}
			c, err := Open(path)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			b.SetBytes(int64(len(m.data) * m.page))
			for b.Loop() {
				var magics int
				tally, err := c.Pages(func(_ uint64, run []byte) error {
					for i := 0; i < len(run); i += m.page {
						if string(run[i:i+8]) == "a magic!" {
							magics++
						}
					}
					return nil
				})
				if err != nil || tally.Pages != uint64(len(m.data)) || magics != 0 {
					b.Fatal(tally, err, magics)
				}
			}
		})
	}
}
