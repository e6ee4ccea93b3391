package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// Capabilities as the README's table has them: enough to stop the machine, and what
// more there is to have.
var (
	capsToStop = []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_NICE, unix.CAP_SYSLOG}
	capsMore   = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH, unix.CAP_IPC_LOCK}
	capNames   = map[uintptr]string{
		unix.CAP_BPF: "BPF", unix.CAP_PERFMON: "PERFMON", unix.CAP_SYS_NICE: "SYS_NICE", unix.CAP_SYSLOG: "SYSLOG",
		unix.CAP_SYS_ADMIN: "SYS_ADMIN", unix.CAP_SYS_PTRACE: "SYS_PTRACE", unix.CAP_DAC_READ_SEARCH: "DAC_READ_SEARCH", unix.CAP_IPC_LOCK: "IPC_LOCK",
	}
)

// asNobodyWith runs the command as a user who has these capabilities and no others.
func asNobodyWith(caps []uintptr, groups ...uint32) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		asNobody(cmd)
		cmd.SysProcAttr.Credential.Groups = groups
		cmd.SysProcAttr.AmbientCaps = caps
	}
}

// foretold are the warnings that a session has before it begins, hence doctor's.
var foretold = []string{
	"engine_procfs", "engine_pull", "fifo_refused", "isolation_none", "user_stacks_off", "no_symbols", "no_samples", "no_lock", "program_missing", "not_root",
}

// Doctor foretells what take does, for a user with every set of rights: engine,
// isolation, and each thing that the file then says it lacks.
func TestDoctorForetells(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	needRoot(t)
	all := slices.Concat(capsToStop, capsMore)
	type who struct {
		name string
		bend func(*exec.Cmd)
		lack []string // what must be said at least, where BPF is at all
	}
	list := []who{
		{"root", nil, nil},
		{"nothing", asNobody, []string{"engine_procfs"}},
		{"user namespace", inUserNamespace, []string{"engine_procfs"}},
		{"all", asNobodyWith(all), []string{"no_lock"}},
		{"to stop", asNobodyWith(capsToStop), []string{"no_lock", "user_stacks_off"}},
	}
	without := map[uintptr]string{
		unix.CAP_BPF: "engine_procfs", unix.CAP_PERFMON: "engine_procfs", unix.CAP_SYS_NICE: "fifo_refused", unix.CAP_SYSLOG: "no_symbols",
		unix.CAP_SYS_ADMIN: "user_stacks_off", unix.CAP_SYS_PTRACE: "no_lock", unix.CAP_DAC_READ_SEARCH: "no_lock", unix.CAP_IPC_LOCK: "no_lock",
	}
	for _, set := range [][]uintptr{capsToStop, capsMore} {
		for _, c := range set {
			have := capsToStop
			if slices.Contains(capsMore, c) {
				have = all
			}
			if c != unix.CAP_SYS_NICE && c != unix.CAP_SYSLOG && !testneed.Length(false, true) {
				continue // in short, only what no other of these users lacks alone
			}
			rest := slices.DeleteFunc(slices.Clone(have), func(x uintptr) bool { return x == c })
			list = append(list, who{"without " + capNames[c], asNobodyWith(rest), []string{without[c]}})
		}
	}
	for _, w := range list {
		t.Run(w.name, func(t *testing.T) { foretells(t, invocation{bend: w.bend}, w.lack) })
	}
}

func foretells(t *testing.T, in invocation, lack []string) {
	d := in.diagnosis(t)
	file := openDir(t) + "/file"
	var s *kcdata.Snapshot
	for range 5 { // a stop that a busy host kept from coming about is another matter
		o := in.run(t, "take", "-o", file, "-q")
		reason := strings.Contains(o.stderr, "incomplete: ") || strings.Contains(o.stderr, "nothing was stopped")
		if o.code != exitWhole && o.code != exitIncomplete || reason != (o.code == exitIncomplete) {
			t.Fatalf("exit code %d: %s", o.code, o.stderr)
		}
		s = snapshotOf(t, file)
		if s.Engine == snapshot.EngineProcfs && o.code != exitIncomplete {
			t.Errorf("exit code %d with engine %s", o.code, s.Engine)
		}
		if !slices.ContainsFunc(s.Warnings, func(w kcdata.Warning) bool { return w.Code == "stop_aborted" }) {
			break
		}
	}
	if s.Engine != d.Auto.Engine || s.Isolation != d.Auto.Isolation {
		t.Errorf("the file: engine %s, isolation %s; doctor: %+v", s.Engine, s.Isolation, d.Auto)
	}
	said, told := map[string]bool{}, map[string]bool{}
	for _, w := range s.Warnings {
		if slices.Contains(foretold, w.Code) {
			said[w.Code] = true
		}
	}
	for _, w := range d.Auto.Warnings {
		told[w.Code] = true
	}
	if d.Auto.Why != "" {
		told["engine_"+d.Auto.Engine] = true
	}
	if !maps.Equal(said, told) {
		t.Errorf("the file says %v, doctor told %v", said, told)
	}
	for _, code := range lack {
		if !said[code] && (d.Engines[1].OK || code == "engine_procfs") && !(code == "fifo_refused" && said["isolation_none"]) {
			t.Errorf("nothing is said of %s: %v", code, s.Warnings)
		}
	}
	if w := s.WaitTaken; s.Engine != snapshot.EngineProcfs && (w == nil || (w.Sources&kcdata.WaitHasScan == 0) != said["no_symbols"]) {
		t.Errorf("waits %+v; symbols are hidden: %v, and then no stack is scanned", w, said["no_symbols"])
	}
	checkHas(t, s, said)
	checkSuspects(t, d.Facts)
	for name, bad := range map[string]bool{"lock": said["no_lock"], "kptr_restrict": said["no_symbols"]} {
		i := slices.IndexFunc(d.Facts, func(f fact) bool { return f.Name == name })
		if i < 0 || s.Engine != snapshot.EngineProcfs && d.Facts[i].OK == bad {
			t.Errorf("%s: %+v, and the file says %v", name, d.Facts[i], said)
		}
	}
}

// checkSuspects: what a missing right explains is laid to nothing else, and a right that
// no capture uses is not missed.
func checkSuspects(t *testing.T, facts []fact) {
	t.Helper()
	bad := map[string]bool{}
	for _, f := range facts {
		bad[f.Name] = !f.OK
	}
	if bad["CAP_SYS_NICE"] && bad["RT_GROUP_SCHED"] || bad["CAP_SYS_RESOURCE"] {
		t.Errorf("false alarms: %+v", facts)
	}
}

// checkHas holds what a file has against what it says it lacks.
func checkHas(t *testing.T, s *kcdata.Snapshot, said map[string]bool) {
	t.Helper()
	var user, kernel int
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			if th.Sample == nil { // which has the user's chain by the kernel's word
				user += len(th.User)
				kernel += len(th.Kernel)
			}
		}
	}
	stops := s.Engine != snapshot.EngineProcfs
	if off := said["user_stacks_off"]; user > 0 && off || user == 0 && !off && stops { // without a stop: those of threads that may be traced
		t.Errorf("%d user frames with engine %s, and it says %v", user, s.Engine, said)
	}
	if stops && kernel == 0 {
		t.Error("no kernel frames")
	}
	if named := s.Machine.TextAddr != 0; named == said["no_symbols"] {
		t.Errorf("_text at %#x, and it says %v", s.Machine.TextAddr, said)
	}
}

func (i invocation) diagnosis(t *testing.T) (d diagnosis) {
	t.Helper()
	o := i.run(t, "doctor", "--json")
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		t.Fatalf("%v: exit code %d, %s%s", err, o.code, o.stdout, o.stderr)
	}
	return d
}

// inUserNamespace makes a user root, with every capability, of a user namespace.
func inUserNamespace(cmd *exec.Cmd) {
	cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `exec unshare -Ur "$@"`, "sh"}, cmd.Args...)
	asNobody(cmd)
}

// With a directory of a group's, its members take turns with root.
func TestLockDirectory(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Slow(t)
	t.Parallel()
	const group = 65533
	withMounts(t, func(t *testing.T) {
		mount(t, "none", "/run", "tmpfs", 0, "mode=755")
		mount(t, "none", "/dev/shm", "tmpfs", 0, "mode=1777")
		if err := os.Mkdir("/run/stackshot", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown("/run/stackshot", 0, group); err != nil {
			t.Fatal(err)
		}
		stackshot(t, "doctor") // root's; makes the lock
		for _, c := range []struct {
			groups []uint32
			ok     bool
		}{{[]uint32{group}, true}, {nil, false}} {
			in := invocation{bend: asNobodyWith(capsToStop, c.groups...)}
			d := in.diagnosis(t)
			for _, f := range d.Facts {
				switch {
				case f.Name == "lock" && (f.OK != c.ok || c.ok && f.Value != "/run/stackshot/lock"):
					t.Errorf("groups %v: %+v", c.groups, f)
				case f.Name == "/run" && f.OK:
					t.Errorf("%+v, and it is a mount of this test's", f)
				}
			}
			o := in.run(t, "take", "-o", "/dev/shm/x", "--json", "--engine", "pull")
			if said := strings.Contains(o.stdout, `"code":"no_lock"`); o.code != exitWhole && o.code != exitIncomplete || said == c.ok {
				t.Errorf("groups %v: exit code %d, %s%s", c.groups, o.code, o.stdout, o.stderr)
			}
		}
	})
}
