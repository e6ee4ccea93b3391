package procfs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMachineFiles(t *testing.T) {
	f := FS{}
	id, err := f.BootID()
	if len(id) != 36 || err != nil {
		t.Errorf("boot id %q, %v", id, err)
	}
	load, err := f.Loadavg()
	if len(strings.Fields(load)) != 5 || err != nil {
		t.Errorf("loadavg %q, %v", load, err)
	}
	mem, err := f.Meminfo()
	if !strings.HasPrefix(mem, "MemTotal:") || strings.HasSuffix(mem, "\n") || err != nil {
		t.Errorf("meminfo %q, %v", mem, err)
	}
	pressure, err := f.Pressure()
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(pressure) {
		if w := strings.Fields(line); len(w) != 6 || !slices.Contains([]string{"cpu", "io", "memory", "irq"}, w[0]) {
			t.Errorf("pressure line %q", line)
		}
	}
}

// A kernel without PSI is no error.
func TestNoPressure(t *testing.T) {
	root := t.TempDir()
	if got, err := (FS{Root: root}).Pressure(); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Mkdir(filepath.Join(root, "pressure"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "pressure/io"), []byte("some avg10=1\nfull avg10=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := (FS{Root: root}).Pressure(); got != "io some avg10=1\nio full avg10=2\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Large directories come whole: more entries than any one getdents call takes.
func TestThreadsOfMany(t *testing.T) {
	root := t.TempDir()
	var want []int
	for i := range 1500 {
		want = append(want, 1000+i)
		if err := os.MkdirAll(filepath.Join(root, "1/task", strconv.Itoa(1000+i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "1/task/not-a-number"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := NewReaders(0, 5*time.Second)
	defer r.Close()
	for _, f := range []FS{{Root: root}, {Root: root, Readers: r}} {
		got, err := f.Threads(1)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d threads, %v", len(got), err)
		}
	}
}
