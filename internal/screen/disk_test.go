package screen

import (
	"strings"
	"testing"

	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// busyDisk is a machine whose disk all wait for: two commands copy, a third has a page to read.
func busyDisk(age uint64) *scene {
	c := newScene(2)
	c.psi("io", 76, 31)
	data := mount("/mnt/data", "ext4", "/dev/loop0")
	for i := range uint32(8) {
		t := c.proc(400+i, []string{"tar", "dd"}[i/4], 1)
		w := c.waits(t, c.blocked(t, age, "schedule", "submit_bio_wait"), waits.BlockIO, 0)
		f := atFile(w, kcdata.FileRegular, kcdata.FileOpRead, 0)
		f.Mount, f.Device = data, "loop0"
	}
	t := c.proc(500, "java", 1)
	c.waits(t, c.blocked(t, age, "schedule", "folio_wait_bit_common", "filemap_fault"), waits.PageFault, 0)
	return c
}

// A disk that all wait for is said with who waits and where, and the machine is not called ill.
// Nobody in D is at rest. What STUCK tells is not told again.
func TestBusyDisk(t *testing.T) {
	for _, x := range []struct {
		name   string
		age    uint64
		redact bool
		says   []string
		not    []string
	}{
		{"busy", 640 * ms, false, []string{
			"\nnothing is stuck; worth a look: DISK\n",
			"   76 %  all threads waited for I/O 31 % of 10 s; 8 in D at /mnt/data (ext4, /dev/loop0): 4 x tar [400], 4 x dd [404]\n",
			"         1 in D for a page that it touched: java [500]\n", "         tar [400] waits longest, up to 640 ms\n", "\nat rest: 1 asleep",
		}, []string{"less than 1 s"}},
		{"redacted", 640 * ms, true, []string{"8 in D at its file system (ext4): 4 x tar"}, []string{"/mnt", "loop0"}},
		{"stuck", sec, false, []string{"\nSTUCK\n"}, []string{"DISK", "waited for I/O"}},
	} {
		c := busyDisk(x.age)
		if x.redact {
			c.s.Machine.Redacted = 1
		}
		text := textOf(t, c.done(), Options{Verdict: c.v})
		for _, s := range x.says {
			if !strings.Contains(text, s) {
				t.Errorf("%s: %q is not said in\n%s", x.name, s, text)
			}
		}
		for _, s := range x.not {
			if strings.Contains(text, s) {
				t.Errorf("%s: %q is said in\n%s", x.name, s, text)
			}
		}
	}
}

// Somebody in D at another disk does not explain the pressure.
func TestAnotherDiskIsStuck(t *testing.T) {
	c := busyDisk(640 * ms)
	c.s.Tasks = c.s.Tasks[:8] // fewer than are worth a line without pressure
	stuck := c.proc(600, "ls", 1)
	w := c.waits(stuck, c.in(stuck, kcdata.StateUninterruptible, 9, "schedule", "rpc_wait_bit_killable"), waits.NFS, 9)
	atFile(w, kcdata.FileRegular, kcdata.FileOpRead, 0).Mount = mount("/nas", "nfs4", "nas:/x")
	if text := textOf(t, c.done(), Options{Verdict: c.v}); !strings.Contains(text, "\nSTUCK\n") || !strings.Contains(text, "\nDISK\n") {
		t.Errorf("\n%s", text)
	}
}

// Who waits for pages because memory is short is told by MEMORY alone.
func TestMemoryExplainsDisk(t *testing.T) {
	m := newMachine(2)
	m.psi("io", 76, 31)
	m.s.Meminfo = "MemTotal: 1000000 kB\nMemAvailable: 40000 kB\n"
	for i := range uint32(8) {
		m.blocked(m.proc(400+i, "java", 1), 30*ms, "submit_bio_wait", "swap_readpage", "do_swap_page")
	}
	v := m.view()
	v.sections()
	text := m.text()
	if rest := v.atRest(v.inLine()); !strings.Contains(text, "MEMORY!") || strings.Contains(text, "DISK") || strings.Contains(rest, "in D") {
		t.Errorf("%s\n%s", text, rest)
	}
}
