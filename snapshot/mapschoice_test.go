package snapshot

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/collate"
	"stackshot/internal/procfs"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
)

// manyMaps maps 5,000 pages of code, each by itself, and sleeps; Python is first
// and the C library, in which it sleeps, last in its list of mappings.
const manyMaps = `
import mmap, sys, time
keep = [mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC) for _ in range(5000)]
sys.stdout.write("ready\\n"); sys.stdout.flush()
time.sleep(300)
`

// A process with more executable mappings than a file holds keeps those that its
// frames lie in, its stack is as long as it is, and the rest is counted.
func TestMoreMappingsThanAreKept(t *testing.T) {
	requireBPF(t)
	if userlab.Guest() {
		t.Skip("needs Python: a guest has none")
	}
	testneed.Program(t, "python3")
	child := exec.Command("python3", "-c", manyMaps)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	if _, err := fmt.Fscanln(out); err != nil && err.Error() != "expected newline" {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	asleep := func() (bool, error) {
		return strings.Contains(slurp(t, fmt.Sprintf("/proc/%d/wchan", pid)), "nanosleep"), nil
	}
	if err := testtask.WaitFor(10*time.Second, asleep); err != nil {
		t.Fatal(err)
	}
	executable := 0
	for m, err := range procfs.ParseMaps([]byte(slurp(t, fmt.Sprintf("/proc/%d/maps", pid))), procfs.PermExec) {
		if executable++; err != nil || m.End == 0 {
			t.Fatal(err)
		}
	}
	_, snap, _ := takeWhole(t, Options{Engine: EnginePull, ArrivalBudget: slow(time.Second)}, Request{Pids: []int{pid}})
	task := tasksByID(snap)[uint64(pid)]
	if len(task.Mappings) != collate.MaxMappings || executable < 5000 {
		t.Errorf("%d mappings of %d are in the file", len(task.Mappings), executable)
	}
	want := fmt.Sprintf("maps: %d executable mappings are left out: a task has at most %d in the file", executable-collate.MaxMappings, collate.MaxMappings)
	if notes := strings.Join(task.EnrichFailed, "; "); notes != want {
		t.Errorf("%q, want %q", notes, want)
	}
	th := task.Threads[0]
	if len(th.User) < 10 || th.UserWalk.Flags&kcdata.UserComplete == 0 {
		t.Errorf("%d frames, walk %+v", len(th.User), th.UserWalk)
	}
	for _, pc := range th.User {
		if _, ok := task.MappingAt(pc); !ok {
			t.Errorf("the mapping of frame %#x is not in the file", pc)
		}
	}
}

// Of random mappings and threads: never more than fit, ascending, none of a frame
// left out while another is kept, and the same program known by all of them.
func TestMostUsefulMappings(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 30 {
		var maps []kcdata.Mapping
		at := uint64(1 << 20)
		for range collate.MaxMappings + 1 + r.IntN(3000) {
			at += r.Uint64N(2) * 4096
			maps = append(maps, kcdata.Mapping{LinuxMapping: kcdata.LinuxMapping{Start: at, End: at + 4096, Inode: 9}})
			at += 4096
		}
		pick := func() (uint64, int) {
			i := r.IntN(len(maps))
			return maps[i].Start + 8*(1+r.Uint64N(511)), i
		}
		task := &collate.TaskBytes{Maps: slices.Clone(maps), Exe: kcdata.LinuxTaskExe{Ino: 9}}
		frames := map[uint64]bool{}
		see := func() uint64 {
			a, i := pick()
			frames[maps[i].Start] = true
			return a
		}
		for range 1 + r.IntN(300) {
			th := collate.ThreadAt{IP: see(), Sampled: []uint64{see()}}
			th.User.Chain = []kcdata.LinuxUserLink{{PC: see()}}
			if runtime.GOARCH == "arm64" {
				th.User.Chain = append(th.User.Chain, kcdata.LinuxUserLink{PC: see() | 0x2a<<48})
			}
			th.User.Registers = []uint64{see(), 1, ^uint64(0)}
			th.User.Stack = []kcdata.UserBytes{{Addr: 0x7ff4, Data: append(make([]byte, 4), binary.LittleEndian.AppendUint64(nil, see())...)}}
			_, i := pick() // the address behind a call that is the last instruction of a mapping
			frames[maps[i].Start] = true
			th.User.Chain = append(th.User.Chain, kcdata.LinuxUserLink{PC: maps[i].End})
			task.Threads = append(task.Threads, th)
		}
		if !task.SameProgram() {
			t.Fatal("of another program")
		}
		var out collate.Loaded
		task.MostUseful(&out)
		kept := map[uint64]bool{}
		for _, m := range task.Maps {
			kept[m.Start] = true
		}
		if len(kept) != collate.MaxMappings || !slices.IsSortedFunc(task.Maps, func(a, b kcdata.Mapping) int { return int(a.Start) - int(b.Start) }) {
			t.Fatalf("%d mappings, or not ascending", len(task.Maps))
		}
		for start := range frames {
			if !kept[start] {
				t.Fatalf("the mapping at %#x is left out, a frame lies in it", start)
			}
		}
		want := fmt.Sprintf("maps: %d executable mappings are left out: a task has at most 4096 in the file", len(maps)-collate.MaxMappings)
		if got := strings.Join(out.Notes, "; "); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

// The bits above an address are a signature on arm64, and elsewhere part of a number
// that is no address.
func TestSignedAddressesOnArm64Alone(t *testing.T) {
	task := &collate.TaskBytes{
		Maps:    []kcdata.Mapping{{LinuxMapping: kcdata.LinuxMapping{Start: 0x10000, End: 0x11000}}},
		Threads: []collate.ThreadAt{{IP: 0x10800 | 0x2a<<48}},
	}
	for signed, want := range map[bool]int{true: collate.MappingFrame, false: collate.MappingOther} {
		if rank := task.RankMaps(signed); rank[0] != want {
			t.Errorf("signed %v: rank %d, want %d", signed, rank[0], want)
		}
	}
}

// Where even those of frames do not fit, that is said; and what was read only in
// part is not called another program's.
func TestMappingsOfFramesLeftOut(t *testing.T) {
	var text strings.Builder
	task := &collate.TaskBytes{}
	for i := range collate.MaxMappings + 5 {
		start := uint64(0x10000 + i*8192)
		fmt.Fprintf(&text, "%x-%x r-xp 00000000 00:00 0 \n", start, start+4096)
		task.Threads = append(task.Threads, collate.ThreadAt{IP: start})
	}
	var out collate.Loaded
	if err := task.ParseMaps(procfs.File{Data: []byte(text.String())}, &out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.Notes, "; "); len(task.Maps) != collate.MaxMappings || !strings.HasSuffix(got, "maps: in 5 of those left out a frame may lie") {
		t.Errorf("%d mappings, %q", len(task.Maps), got)
	}
	task.Threads = []collate.ThreadAt{{IP: 1 << 40}}
	for cut, want := range map[bool]error{false: collate.ErrExec, true: collate.ErrBehind} {
		if err := task.ParseMaps(procfs.File{Data: []byte(text.String()), Truncated: cut}, &out); err != want || task.Maps != nil {
			t.Errorf("cut %v: %v, want %v", cut, err, want)
		}
	}
}
