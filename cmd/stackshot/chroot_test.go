package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stackshot/internal/testneed"

	"golang.org/x/sys/unix"
)

const maxBinary = 30 << 20

// The program is one file: static, of bounded size, at home in a root that has
// nothing but /proc and /sys. Alone, it names its file itself and shows one screen.
func TestEmptyChroot(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	t.Parallel()
	st, err := os.Stat(program)
	if err != nil || st.Size() > maxBinary {
		t.Fatalf("%d bytes, want at most %d: %v", st.Size(), maxBinary, err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Error("not static")
		}
	}
	root := t.TempDir()
	withMounts(t, func(t *testing.T) {
		mount(t, "none", root, "tmpfs", 0, "size=64m")
		for _, err := range []error{
			os.Mkdir(root+"/proc", 0o755), os.Mkdir(root+"/sys", 0o755), copyFile(root+"/stackshot", program),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		mount(t, "proc", root+"/proc", "proc", 0, "")
		mount(t, "/sys", root+"/sys", "", unix.MS_BIND|unix.MS_REC, "")
		inside := invocation{bend: func(c *exec.Cmd) {
			c.Path, c.Dir, c.Env = "/stackshot", "/", []string{}
			c.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		}}
		o := inside.run(t)
		taken(t, o)
		files, _ := filepath.Glob(root + "/stackshot-*.kcdata.zst")
		if len(files) != 1 {
			t.Fatalf("files %q: %s", files, o.stderr)
		}
		mode0600(t, files[0])
		if lines := strings.Count(o.stdout, "\n"); lines == 0 || lines > plainRows || !strings.Contains(o.stdout, "stackshot report "+filepath.Base(files[0])) {
			t.Errorf("%d lines, or the last does not name the rest: %s", lines, o.stdout)
		}
		o = inside.run(t, "report", "/"+filepath.Base(files[0]))
		if o.want(t, exitWhole); !strings.Contains(o.stdout, "threads in") {
			t.Errorf("report: %.300s", o.stdout)
		}
		if o = inside.run(t, "doctor"); !strings.Contains(o.stdout, "ok  procfs") {
			t.Errorf("doctor: exit code %d, %s%s", o.code, o.stdout, o.stderr)
		}
	})
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755)
}
