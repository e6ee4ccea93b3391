package cgroups

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

const (
	second = "22 1 254:0 / / rw - ext4 /dev/vda rw\n40 22 0:38 / /cg rw - cgroup2 cgroup2 rw\n"
	first  = "22 1 254:0 / / rw - ext4 /dev/vda rw\n40 22 0:38 / /cg rw - cgroup cgroup rw,memory\n"
	none   = "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
)

// looker is one of a machine that is made of files: those of /proc and, below /cg, of groups.
func looker(t *testing.T, files map[string]string) *Looker {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	readers := procfs.NewReaders(4, 0)
	t.Cleanup(readers.Close)
	return &Looker{Proc: procfs.FS{Root: root + "/proc", Readers: readers}, Root: root, Budget: 20 * time.Second, Most: MostGroups}
}

// brief is one line for each group.
func brief(c *capture.Cgroups) (out []string) {
	for _, g := range c.Groups {
		line := fmt.Sprintf("%s %d/%d", g.Path, g.Tasks, g.Threads)
		if g.Outcome != kcdata.CgroupRead {
			line += fmt.Sprintf(" outcome %d", g.Outcome)
		}
		if g.Present&kcdata.CgroupHasCurrent != 0 {
			line += fmt.Sprintf(" current %d", g.Current)
		}
		if g.Present&kcdata.CgroupHasMax != 0 && g.Max != kcdata.CgroupUnlimited {
			line += fmt.Sprintf(" max %d", g.Max)
		}
		if g.Flags&kcdata.CgroupAbove != 0 {
			line += " above"
		}
		if g.Parent != kcdata.CgroupNoParent {
			line += " in " + c.Groups[g.Parent].Path
		}
		out = append(out, line)
	}
	return out
}

func check(t *testing.T, c *capture.Cgroups, want ...string) {
	t.Helper()
	if got := brief(c); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	sum := &c.Taken
	listed := sum.Read + sum.Gone + sum.Denied + sum.Late + sum.Hidden + sum.Failed
	if int(listed) != len(c.Groups) || sum.Groups-sum.Rest+sum.Above != listed {
		t.Errorf("the sums do not agree: %+v", sum)
	}
}

// groupFiles are the files of a group of version 2.
func groupFiles(files map[string]string, path, current, most string) {
	at := "cg" + strings.TrimSuffix(path, "/") + "/"
	files[at+"cgroup.procs"] = ""
	if current != "" {
		files[at+"memory.current"], files[at+"memory.max"] = current+"\n", most+"\n"
	}
}

// Of the groups above, those with a limit are in the file, and those that count for a group without
// a memory controller.
func TestAbove(t *testing.T) {
	files := map[string]string{
		"proc/self/mountinfo": second, "proc/10/cgroup": "0::/a/b/c\n", "proc/11/cgroup": "0::/a/b/c\n", "proc/12/cgroup": "0::/a\n",
		"proc/13/cgroup": "0::/d/e/f\n", "proc/14/cgroup": "0::/\n", "proc/15/cgroup": "1:cpu:/x\n0::/gone\n",
	}
	groupFiles(files, "/", "", "")
	groupFiles(files, "/a", "300", "max")
	groupFiles(files, "/a/b", "200", "1000")
	groupFiles(files, "/a/b/c", "100", "max")
	groupFiles(files, "/d", "50", "max")
	groupFiles(files, "/d/e", "", "")
	groupFiles(files, "/d/e/f", "", "")
	members := []Member{{10, 2}, {11, 3}, {12, 1}, {13, 1}, {14, 7}, {15, 1}, {16, 1}}
	c := looker(t, files).Look(members)
	check(t, c, "/ 1/7", "/a 1/1 current 300 in /", "/a/b 0/0 current 200 max 1000 above in /a", "/a/b/c 2/5 current 100 in /a/b",
		"/d 0/0 current 50 above in /", "/d/e/f 1/1 in /d", "/gone 1/1 outcome 1 in /")
	if g := c.Groups[1]; g.Present&kcdata.CgroupHasID == 0 || g.ID == 0 {
		t.Errorf("%+v", g)
	}
	taken := c.Taken
	taken.AtNs, taken.TotalNs = 0, 0
	if want := (kcdata.LinuxCgroupsTaken{Version: 2, Tasks: 7, Groups: 5, Above: 2, Read: 6, Gone: 1, Flags: kcdata.CgroupsNoPressure}); taken != want {
		t.Errorf("%+v", taken)
	}
}

// In version 1 a group counts for those below it only with use_hierarchy.
func TestFlat(t *testing.T) {
	files := map[string]string{"proc/self/mountinfo": first, "proc/10/cgroup": "4:memory:/a/b/c\n0::/\n", "proc/11/cgroup": "4:cpu,memory:/a\n"}
	for path, hierarchy := range map[string]string{"": "0", "/a": "0", "/a/b": "1", "/a/b/c": "0"} {
		at := "cg" + path + "/"
		files[at+"cgroup.procs"], files[at+"memory.use_hierarchy"] = "", hierarchy+"\n"
		files[at+"memory.usage_in_bytes"], files[at+"memory.limit_in_bytes"] = "5\n", "70\n"
	}
	check(t, looker(t, files).Look([]Member{{10, 1}, {11, 1}}),
		"/a 1/1 current 5 max 70", "/a/b 0/0 current 5 max 70 above", "/a/b/c 1/1 current 5 max 70 in /a/b")
}

// Of too many groups those with the most threads are in the file, and the others are counted.
func TestTooMany(t *testing.T) {
	files := map[string]string{"proc/self/mountinfo": second}
	var members []Member
	for i := range 20 {
		files[fmt.Sprintf("proc/%d/cgroup", 100+i)] = fmt.Sprintf("0::/g/%02d\n", i)
		groupFiles(files, fmt.Sprintf("/g/%02d", i), "1", "max")
		members = append(members, Member{100 + i, uint32(i)})
	}
	groupFiles(files, "/", "", "")
	groupFiles(files, "/g", "1", "9")
	l := looker(t, files)
	l.Most = 2
	c := l.Look(members)
	check(t, c, "/g 0/0 current 1 max 9 above", "/g/18 1/18 current 1 in /g", "/g/19 1/19 current 1 in /g")
	if c.Taken.Groups != 20 || c.Taken.Rest != 18 {
		t.Errorf("%+v", c.Taken)
	}
}

// Where nothing is mounted, or nothing is to be read, that is said.
func TestNotMounted(t *testing.T) {
	files := map[string]string{"proc/self/mountinfo": none, "proc/10/cgroup": "0::/a\n", "proc/11/cgroup": "rubbish\n", "proc/12/cgroup": "4:cpu:/\n"}
	c := looker(t, files).Look([]Member{{10, 1}, {11, 1}, {12, 1}})
	check(t, c, "/ 0/0 outcome 4 above", "/a 1/1 outcome 4 in /")
	if c.Taken.Flags != kcdata.CgroupsNoMemory || c.Taken.Unknown != 2 {
		t.Errorf("%+v", c.Taken)
	}
}

// A file that does not answer costs the group and not the others; when the time is up, what is not
// read is late.
func TestLate(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	files := map[string]string{"proc/self/mountinfo": second, "proc/10/cgroup": "0::/a\n", "proc/11/cgroup": "0::/b\n", "proc/12/cgroup": "0::/c\n"}
	for _, path := range []string{"/", "/a", "/b", "/c"} {
		groupFiles(files, path, "1", "max")
	}
	l := looker(t, files)
	fifo := filepath.Join(l.Root, "cg/a/memory.high")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the reader's thread comes loose
		if f, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
	})
	members := []Member{{10, 9}, {11, 5}, {12, 1}}
	c := l.Look(members)
	check(t, c, "/a 1/9 outcome 3 current 1", "/b 1/5 current 1", "/c 1/1 current 1")
	if c.Taken.Flags != kcdata.CgroupsHung|kcdata.CgroupsNoPressure {
		t.Errorf("%+v", c.Taken)
	}
	l.Budget = 50 * time.Millisecond // less than the limit of a read
	began := time.Now()
	c = l.Look(members)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%v", took)
	}
	if c.Taken.Flags&(kcdata.CgroupsHung|kcdata.CgroupsTimeUp) == 0 || c.Taken.Read == 3 || c.Taken.Groups > 3 {
		t.Errorf("%+v", c.Taken)
	}
	check(t, c, brief(c)...)
}

// Why a value is missing.
func TestOutcomes(t *testing.T) {
	at := func(err error) error { return &fs.PathError{Op: "read", Path: "x", Err: err} }
	for _, c := range []struct {
		file    string
		err     error
		outcome uint16
		errno   unix.Errno
	}{
		{".", at(unix.ENOENT), kcdata.CgroupGone, unix.ENOENT},
		{"cgroup.procs", at(unix.ENOENT), kcdata.CgroupGone, unix.ENOENT},
		{"memory.max", at(unix.ENOENT), kcdata.CgroupRead, 0},
		{"memory.max", at(unix.ENODEV), kcdata.CgroupGone, unix.ENODEV},
		{"memory.max", at(unix.EACCES), kcdata.CgroupDenied, unix.EACCES},
		{"memory.pressure", at(unix.EOPNOTSUPP), kcdata.CgroupRead, 0},
		{"memory.max", at(unix.EIO), kcdata.CgroupFailed, unix.EIO},
		{"memory.max", &procfs.TimeoutError{}, kcdata.CgroupLate, unix.ETIMEDOUT},
		{"memory.max", nil, kcdata.CgroupFailed, unix.EINVAL}, // of another form
	} {
		g, read := newGroup(key{2, "/"}), readable(filesOf[2])
		for i, f := range filesOf[2] {
			read[i].Data = []byte("1\n")
			switch {
			case f.name == c.file:
				if read[i].Err = c.err; c.err == nil {
					read[i].Data = []byte("rubbish\n")
				}
			case f.name == "memory.events" || f.name == "memory.pressure":
				read[i].Err = at(unix.ENOENT)
			}
		}
		if g.fill(filesOf[2], read); g.Outcome != c.outcome || g.Errno != uint32(c.errno) {
			t.Errorf("%s: %v: outcome %d, errno %d", c.file, c.err, g.Outcome, g.Errno)
		}
	}
}
