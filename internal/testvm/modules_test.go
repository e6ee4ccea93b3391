package testvm

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stackshot/internal/testelf"
	"stackshot/internal/testneed"
)

// Modules come behind those that they need, each once, however they are packed and
// spelled; what is built in is passed over, and what is missing is named.
func TestModules(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Program(t, "xz")
	k := Kernel{Release: "r", Image: filepath.Join(t.TempDir(), "vmlinuz")}
	if err := os.MkdirAll(k.ModulesDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(k.ModulesDir(), name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	module := func(depends string) []byte {
		return testelf.File(testelf.Section{Name: ".modinfo", Type: elf.SHT_PROGBITS, Data: []byte("license=GPL\x00depends=" + depends + "\x00")})
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	xz := exec.Command("xz", "--stdout")
	xz.Stdin = bytes.NewReader(module("low-one,inside"))
	packed, err := xz.Output()
	if err != nil {
		t.Fatal(err)
	}
	put("top.ko", module("middle,low_one"))
	put("middle.ko.xz", packed)
	put("low-one.ko.zst", z.EncodeAll(module(""), nil))
	put("orphan.ko", module("gone"))
	put("bad.ko", []byte("no ELF"))
	put(builtinList, []byte("kernel/lib/inside.ko\n"))

	s, err := k.modules([]string{"top a=1 b=2", "low-one", "inside"})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, m := range s.load {
		order = append(order, filepath.Base(m.File)+" "+m.Parameters)
		if !bytes.HasPrefix(s.image[m.File[1:]], []byte(elf.ELFMAG)) {
			t.Errorf("%s is packed as %q", m.File, s.image[m.File[1:]])
		}
	}
	if got := strings.Join(order, ";"); got != "low_one.ko ;middle.ko ;top.ko a=1 b=2" {
		t.Errorf("order %q", got)
	}
	for name, want := range map[string]string{"orphan": "no module gone", "nosuch": "no module nosuch", "bad": "bad.ko"} {
		if _, err := k.modules([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for _, wanted := range [][]string{{"inside a=1"}, {"top", "low-one a=1"}} {
		if _, err := k.modules(wanted); err == nil || !strings.Contains(err.Error(), "would be lost") {
			t.Errorf("%q: %v", wanted, err)
		}
	}
	none := Kernel{Release: "other", Image: k.Image}
	if _, err := none.modules([]string{"top"}); err == nil || !strings.Contains(err.Error(), "vmtest kernels") {
		t.Errorf("a kernel without modules: %v", err)
	}
}
