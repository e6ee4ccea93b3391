package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"stackshot/internal/bpf"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// userEngines are those that take user stacks on this kernel.
func userEngines() []string {
	if trapHere() {
		return []string{EnginePull, EngineTrap}
	}
	return []string{EnginePull}
}

// frameLink is where a chain goes next, from its address.
type frameLink struct{ at, next, pc uint64 }

// pose is one case: what a thread's memory and registers are, and what must be
// in the file.
type pose struct {
	sp, fp uint64
	write  []frameLink
	flags  uint32 // but for Walked and Exact
	links  int
	stop   uint64
	bytes  uint64 // from sp, in pieces that are there
	absent uint32
	denied uint32
}

// Chains and stacks of every shape, by both engines: what the file has is what
// /proc/PID/mem says, byte for byte, and what it has not is marked.
func TestUserStack(t *testing.T) {
	testneed.Smoke(t)
	testneed.Slow(t)
	requireBPF(t)
	p, secret := startPuppet(t, "still")
	p.Stop(p.pid)
	cases := poses(p)
	if !secret {
		delete(cases, "a page that the kernel does not map")
	}
	for _, engineName := range userEngines() {
		s := withUserSide(t, Options{Engine: engineName, UserFrames: 300, StackBytes: 16 << 10})
		for name, c := range cases {
			t.Run(engineName+"/"+name, func(t *testing.T) {
				for _, l := range c.write {
					p.Write(l.at, l.next, l.pc)
				}
				p.pose(p.pid, c.sp, c.fp)
				th := userThread(t, s, p.pid, p.pid)
				c.check(t, th)
				matchesMem(t, p, th)
			})
		}
	}
	page := uint64(os.Getpagesize())
	for n := range uint64(4) {
		if at := p.page(puppetOut) + n*page; p.Present(at) {
			t.Errorf("the page at %#x was brought in", at)
		}
	}
}

// poses are the cases, on the puppet's arena.
func poses(p *puppet) map[string]pose {
	a, page := p.page(0), uint64(os.Getpagesize())
	closed, out, absent := p.page(puppetClosed), p.page(puppetOut), p.page(puppetAbsent)
	chain := func(from uint64, n int, step uint64) (list []frameLink) {
		for i := range n {
			at := from + uint64(i)*step
			list = append(list, frameLink{at, at + step, 0x400000 + uint64(i)})
		}
		return list
	}
	ended := func(list []frameLink) []frameLink {
		list[len(list)-1].next = 0
		return list
	}
	twelve := ended(chain(a+256, 12, page/2+frameAlign))
	return map[string]pose{
		"12 frames, ended":      {sp: a + 64, fp: a + 256, write: twelve, links: 12, bytes: 16 << 10},
		"no frame pointer":      {sp: a + 64, bytes: 16 << 10},
		"a return address of 0": {sp: a, fp: a + 256, write: []frameLink{{a + 256, a + 512, 1}, {a + 512, a + 600, 0}}, links: 1, bytes: 256 + 16 + 1024},
		"more than asked for": {sp: a + 8, fp: a + 256, write: chain(a+256, 301, 32), flags: kcdata.UserTruncated,
			links: 300, stop: a + 256 + 300*32, bytes: 16 << 10},
		"not above the last": {sp: a, fp: a + 256, write: []frameLink{{a + 256, a + 256, 1}}, flags: kcdata.UserOutside, links: 1, stop: a + 256, bytes: 16 << 10},
		"below the stack":    {sp: a + 512, fp: a + 256, flags: kcdata.UserOutside, stop: a + 256, bytes: 16 << 10},
		"beyond the stack":   {sp: a, fp: a + 8<<20, flags: kcdata.UserOutside, stop: a + 8<<20, bytes: 16 << 10},
		"not aligned":        {sp: a, fp: a + 257, flags: kcdata.UserOutside, stop: a + 257, bytes: 16 << 10},
		"into PROT_NONE":     {sp: closed - page, fp: closed - 64, write: []frameLink{{closed - 64, closed + 64, 1}}, flags: kcdata.UserOutside, links: 1, stop: closed + 64, bytes: min(page, 16<<10)},
		// All of a stack that is short enough is taken, wherever its chain ends.
		"short, ended":       {sp: closed - 12<<10, fp: closed - 11<<10, write: []frameLink{{closed - 11<<10, 0, 1}}, links: 1, bytes: 12 << 10},
		"as long as allowed": {sp: closed - 16<<10, fp: closed - 15<<10, write: []frameLink{{closed - 15<<10, 0, 1}}, links: 1, bytes: 16 << 10},
		"a word too long":    {sp: closed - 16<<10 - 8, fp: closed - 15<<10, write: []frameLink{{closed - 15<<10, 0, 1}}, links: 1, bytes: 1<<10 + 8 + 16 + 1<<10},
		"sp in PROT_NONE":    {sp: closed + page - 512, fp: closed + page + 64, write: []frameLink{{closed + page + 64, 0, 1}}, flags: kcdata.UserRefused, links: 1, bytes: 64 + 16 + 1024, denied: 1},
		"never touched":      {sp: absent - 100, fp: absent + 64, flags: kcdata.UserNoPage, stop: absent + 64, bytes: 100, absent: uint32(min(2*(16<<10)/page, puppetOut-puppetAbsent))},
		"paged out":          {sp: out + 64, fp: out + 128, flags: kcdata.UserPagedOut, stop: out + 128, absent: uint32(min((16<<10+64+page-1)/page, 4))},
		"sp in the kernel":   {sp: uint64(0xffffff0000000000), fp: uint64(0xffffff0000000000) + 64, flags: kcdata.UserRefused, stop: uint64(0xffffff0000000000) + 64, denied: 1 + uint32((16<<10)/page) - 1},
		"sp at the very end": {sp: ^uint64(0) - 100, fp: 64, flags: kcdata.UserOutside, stop: 64},
		"nowhere":            {sp: 0x30_0000_1000, fp: 0x30_0000_2000, flags: kcdata.UserNoPage, stop: 0x30_0000_2000, absent: uint32(max((64<<10)/page, 1))},
		"a page that the kernel does not map": {sp: p.page(puppetSecret), fp: p.page(puppetSecret) + 64, flags: kcdata.UserRefused,
			stop: p.page(puppetSecret) + 64, denied: 1},
	}
}

func (c *pose) check(t *testing.T, th *kcdata.Thread) {
	t.Helper()
	w := th.UserWalk
	if w == nil {
		t.Fatal("no LINUX_USER_WALK")
	}
	if got := w.Flags &^ (kcdata.UserWalked | kcdata.UserExact); got != c.flags || w.Flags&kcdata.UserWalked == 0 {
		t.Errorf("flags %#x, want %#x", w.Flags, c.flags)
	}
	if int(w.Links) != c.links || len(th.UserChain) != c.links {
		t.Errorf("%d links, %d in the chain, want %d", w.Links, len(th.UserChain), c.links)
	}
	if w.StopAddr != c.stop || uint64(w.Bytes) != c.bytes || w.Absent != c.absent || w.Refused != c.denied {
		t.Errorf("stopped at %#x, %d bytes, %d absent, %d refused; want %#x, %d, %d, %d",
			w.StopAddr, w.Bytes, w.Absent, w.Refused, c.stop, c.bytes, c.absent, c.denied)
	}
	if len(th.UserChain) > 0 && th.UserChain[0].FP != c.fp {
		t.Errorf("the chain begins at %#x, want %#x", th.UserChain[0].FP, c.fp)
	}
}

// matchesMem holds what a file has of a stopped thread's stack against its memory.
func matchesMem(t *testing.T, p *puppet, th *kcdata.Thread) {
	t.Helper()
	sum := 0
	for _, b := range th.UserBytes {
		sum += len(b.Data)
		want := make([]byte, len(b.Data))
		if _, err := p.mem.ReadAt(want, int64(b.Addr)); err != nil {
			t.Errorf("%d bytes at %#x: /proc/PID/mem: %v", len(want), b.Addr, err)
		} else if !bytes.Equal(b.Data, want) {
			t.Errorf("%d bytes at %#x differ from /proc/PID/mem", len(want), b.Addr)
		}
	}
	if th.UserWalk != nil && sum != int(th.UserWalk.Bytes) {
		t.Errorf("%d bytes in the file, %d by the record", sum, th.UserWalk.Bytes)
	}
	for i, l := range th.UserChain {
		var pair [16]byte
		if _, err := p.mem.ReadAt(pair[:], int64(l.FP)); err != nil {
			t.Fatalf("link %d at %#x: %v", i, l.FP, err)
		}
		next, pc := binary.NativeEndian.Uint64(pair[:]), binary.NativeEndian.Uint64(pair[8:])
		if pc != l.PC || i+1 < len(th.UserChain) && next != th.UserChain[i+1].FP {
			t.Errorf("link %d at %#x: {%#x, %#x} in memory, pc %#x in the file", i, l.FP, next, pc, l.PC)
		}
	}
}

func userThread(t *testing.T, s *Session, pid, tid int) *kcdata.Thread {
	t.Helper()
	_, snap, _ := captureWhole(t, s, Request{Pids: []int{pid}})
	for _, task := range snap.Tasks {
		for _, th := range task.Threads {
			if th.ID == uint64(tid) {
				return th
			}
		}
	}
	t.Fatalf("thread %d is not in the file", tid)
	return nil
}

// Stacks of real programs that stand still, stopped in every way there is: each
// byte and each link is what /proc/PID/mem says, by both engines.
func TestUserStacksOfAStillWorld(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	_, pids := stillWorld(t, crowd()...)
	for _, engineName := range userEngines() {
		s := withUserSide(t, Options{Engine: engineName, StackBytes: 16 << 10})
		_, snap, _ := captureWhole(t, s, Request{Pids: pids})
		threads, taken := 0, 0
		for _, task := range snap.Tasks {
			p := &puppet{pid: int(task.ID)}
			var err error
			if p.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", p.pid)); err != nil {
				continue // it has no memory any more
			}
			maps := slurp(t, fmt.Sprintf("/proc/%d/maps", p.pid))
			for _, th := range task.Threads {
				matchesMem(t, p, th)
				if w := th.UserWalk; w != nil && th.Syscall != nil && w.StackEnd != stackEndIn(maps, th.Syscall.SP) {
					t.Errorf("%s: thread %d, sp %#x: stack ends at %#x, /proc says %#x", engineName, th.ID, th.Syscall.SP, w.StackEnd, stackEndIn(maps, th.Syscall.SP))
				}
				threads++
				if len(th.UserBytes) > 0 {
					taken++
				}
			}
			p.mem.Close()
		}
		if taken < 100 {
			t.Errorf("%s: bytes of %d stacks of %d threads", engineName, taken, threads)
		}
	}
}

// stackEndIn is the end of the mapping that holds addr, if it may be read and
// written; 0: there is none.
func stackEndIn(text string, addr uint64) uint64 {
	for line := range strings.Lines(text) {
		var start, end uint64
		var perms string
		fmt.Sscanf(line, "%x-%x %s", &start, &end, &perms)
		if addr >= start && addr < end && strings.HasPrefix(perms, "rw") {
			return end
		}
	}
	return 0
}

// What lies outside System RAM is refused by both engines, whatever is there; here
// a page of the stack is made such by leaving it out of the ranges.
func TestUserStackOutsideRAM(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	p, _ := startPuppet(t, "still")
	p.Stop(p.pid)
	page := uint64(os.Getpagesize())
	at := p.page(4)
	p.Write(at+64, at+page+64, 7)
	p.pose(p.pid, at, at+64)
	frame := frameOf(t, p, at+page)
	for _, engineName := range userEngines() {
		h := engine.Hooks{KeepUserSide: true, DirectMap: func() (*bpf.DirectMap, error) {
			m, err := bpf.FindDirectMap()
			if err != nil {
				return nil, err
			}
			cut := *m
			cut.RAM = nil
			for _, r := range m.RAM {
				if frame*page < r.Start || frame*page >= r.End {
					cut.RAM = append(cut.RAM, r)
					continue
				}
				cut.RAM = append(cut.RAM, bpf.RAMRange{Start: r.Start, End: frame * page}, bpf.RAMRange{Start: (frame + 1) * page, End: r.End})
			}
			return &cut, nil
		}}
		s := hooked(t, Options{Engine: engineName, StackBytes: 16 << 10}, h)
		th := userThread(t, s, p.pid, p.pid)
		c := pose{fp: at + 64, flags: kcdata.UserRefused, links: 1, stop: at + page + 64, bytes: 16<<10 - min(page, 16<<10-page), denied: 1}
		if page > 16<<10 {
			c.bytes = 16 << 10
		}
		c.check(t, th)
		matchesMem(t, p, th)
		s.Close()
	}
}

func frameOf(t *testing.T, p *puppet, addr uint64) uint64 {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", p.pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [8]byte
	if _, err := f.ReadAt(b[:], int64(addr/uint64(os.Getpagesize())*8)); err != nil {
		t.Fatal(err)
	}
	return binary.LittleEndian.Uint64(b[:]) & (1<<55 - 1)
}

// While another thread unmaps and maps the stack that a thread stands on, what is
// taken is a state that was there, or marked absent.
func TestUserStackThatIsUnmapped(t *testing.T) {
	testneed.Lab(t, testneed.Scheduler)
	testneed.Slow(t)
	requireBPF(t)
	p, _ := startPuppet(t, "churn")
	tid := p.otherThread()
	p.Stop(tid)
	p.pose(tid, p.page(16), p.page(17)+64)
	for _, engineName := range userEngines() {
		s := withUserSide(t, Options{Engine: engineName, StackBytes: 16 << 10})
		for range testneed.Length(8, 20) {
			th := userThread(t, s, p.pid, tid)
			if th.UserWalk == nil {
				t.Fatal("no LINUX_USER_WALK")
			}
			for _, b := range th.UserBytes {
				if rest := bytes.TrimLeft(bytes.TrimLeft(b.Data, "\x5a"), "\x00"); len(rest) > 0 && b.Addr+uint64(len(b.Data)) <= p.page(24) {
					t.Errorf("%s: %d bytes at %#x hold %#x", engineName, len(b.Data), b.Addr, rest[0])
				}
			}
			if got := 0; th.UserWalk.Flags&(kcdata.UserPagedOut|kcdata.UserNoPage|kcdata.UserRefused) == 0 {
				for _, b := range th.UserBytes {
					got += len(b.Data)
				}
				if got != 1<<10 && got != 16<<10 { // zeros are a chain's end
					t.Errorf("%s: nothing was absent, and %d bytes were taken", engineName, got)
				}
			}
		}
	}
}

// Every thread with user registers says how its stack was taken; those whose
// memory is gone say so; and the file's sums are the sums.
func TestUserWalkOfEveryThread(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	testneed.Slow(t)
	requireBPF(t)
	f := testtask.Start(t, testtask.MidExit, testtask.ManyThreads(30), testtask.Spinning, testtask.Zombie)
	for _, engineName := range userEngines() {
		s := withUserSide(t, Options{Engine: engineName, StackBytes: 16 << 10})
		_, snap, _ := captureWhole(t, s, Request{})
		var sum kcdata.LinuxUserTaken
		var c kcdata.LinuxUserTaken
		gone := false
		for _, task := range snap.Tasks {
			for _, th := range task.Threads {
				if (th.UserWalk != nil) != (th.Registers != nil) {
					t.Errorf("%s: thread %d: %d registers, walk %v", engineName, th.ID, len(th.Registers), th.UserWalk)
				}
				if th.UserWalk == nil {
					continue
				}
				addUser(&c, th.UserWalk)
				gone = gone || th.UserWalk.Flags&kcdata.UserNoMemory != 0 && int(task.ID) == f.Children[0].Pid
				if exact := th.UserWalk.Flags&kcdata.UserExact != 0; exact != (th.Linux.Present&kcdata.ThreadUserMode != 0) {
					t.Errorf("%s: thread %d: exact %v, present %#x", engineName, th.ID, exact, th.Linux.Present)
				}
			}
		}
		sum = c
		if snap.UserTaken == nil || *snap.UserTaken != sum || sum.Walked == 0 || sum.Bytes == 0 {
			t.Errorf("%s: the file sums up %+v, its threads %+v", engineName, snap.UserTaken, sum)
		}
		if !gone && !anyGone(snap, f) {
			t.Errorf("%s: no thread of a task held in exit says that its memory is gone", engineName)
		}
	}
}

func anyGone(snap *kcdata.Snapshot, f *testtask.Fixture) bool {
	for _, task := range snap.Tasks {
		for i := range f.Children {
			if int(task.ID) != f.Children[i].Pid {
				continue
			}
			for _, th := range task.Threads {
				if th.UserWalk != nil && th.UserWalk.Flags == kcdata.UserNoMemory {
					return true
				}
			}
		}
	}
	return false
}

// fp takes no bytes, off and a redacted capture nothing, and no more links are
// followed than were asked for.
func TestUserStackOptions(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	p, _ := startPuppet(t, "still")
	p.Stop(p.pid)
	a := p.page(0)
	for i := range uint64(20) {
		p.Write(a+256+i*32, a+256+(i+1)*32, i+1)
	}
	p.pose(p.pid, a, a+256)
	for _, engineName := range userEngines() {
		for _, c := range []struct {
			o     Options
			walk  bool
			links uint32
			bytes uint32
		}{
			{Options{UserStacks: UserStacksFP, UserFrames: 7}, true, 7, 0},
			{Options{UserStacks: UserStacksOff}, false, 0, 0},
			{Options{Redact: true}, false, 0, 0},
			{Options{StackBytes: 5000, UserFrames: 1}, true, 1, 5000},
		} {
			c.o.Engine = engineName
			s := withUserSide(t, c.o)
			th := userThread(t, s, p.pid, p.pid)
			if (th.UserWalk != nil) != c.walk {
				t.Errorf("%+v: walk %+v", c.o, th.UserWalk)
			} else if c.walk && (th.UserWalk.Links != c.links || th.UserWalk.Bytes != c.bytes) {
				t.Errorf("%+v: %d links, %d bytes; want %d, %d", c.o, th.UserWalk.Links, th.UserWalk.Bytes, c.links, c.bytes)
			}
			if !c.walk && len(th.UserChain)+len(th.UserBytes) > 0 {
				t.Errorf("%+v: a chain or bytes all the same", c.o)
			}
		}
	}
}

// 64 KiB of a stack and 1,000 links are taken where they are asked for; engine
// pull takes as many bytes as the kernel's buffer holds, and says so.
func TestUserStackAtItsLimits(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	p, _ := startPuppet(t, "still")
	p.Stop(p.pid)
	a := p.page(0)
	for i := range uint64(1001) {
		p.Write(a+256+i*32, a+256+(i+1)*32, i+1)
	}
	p.pose(p.pid, a, a+256)
	for _, engineName := range userEngines() {
		s := withUserSide(t, Options{Engine: engineName, StackBytes: bpf.MaxUserBytes, UserFrames: bpf.MaxUserFrames})
		r, snap, _ := captureWhole(t, s, Request{Pids: []int{p.pid}})
		want := uint32(bpf.MaxUserBytes)
		if engineName == EnginePull {
			want = uint32(s.team.Bpf.PullStackBytes(bpf.MaxUserFrames))
			if !strings.Contains(textOf(r.Warnings, "user_stack_bytes"), fmt.Sprint(s.team.Bpf.PullStackBytes(0))) {
				t.Errorf("warnings %+v", r.Warnings)
			}
		}
		for _, th := range snap.Tasks[0].Threads {
			if th.ID != uint64(p.pid) {
				continue
			}
			if w := th.UserWalk; w == nil || w.Links != bpf.MaxUserFrames || w.Flags&kcdata.UserTruncated == 0 || w.Bytes != want {
				t.Errorf("%s: %+v, want %d bytes", engineName, w, want)
			}
			matchesMem(t, p, th)
		}
	}
}

// Where the kernel's map of memory is not found the capture is made without user
// stacks, and the file says why.
func TestUserStacksOffSaysWhy(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	for _, engineName := range userEngines() {
		h := engine.Hooks{KeepUserSide: true, DirectMap: func() (*bpf.DirectMap, error) { return nil, &bpf.DirectMapError{What: "it is not there"} }}
		s := hooked(t, Options{Engine: engineName, StackBytes: 16 << 10}, h)
		r, snap, _ := captureOnce(t, s, Request{Pids: []int{os.Getpid()}})
		if got := textOf(r.Warnings, "user_stacks_off"); got != "no user stacks are recorded: it is not there" {
			t.Errorf("%s: warnings %+v", engineName, r.Warnings)
		}
		if snap.UserTaken != nil || snap.Tasks[0].Threads[0].UserWalk != nil {
			t.Errorf("%s: user stacks all the same", engineName)
		}
		if exe := snap.Tasks[0].Exe; exe == nil || exe.Ino == 0 || exe.FileName() == "" || exe.Refused != 0 {
			t.Errorf("%s: executable %+v", engineName, exe) // that needs no such map
		}
		s.Close()
	}
}

func TestUserOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    Options
		name string
	}{
		{Options{UserStacks: "dwarf"}, "user-stacks"}, {Options{StackBytes: 1023}, "stack-bytes"}, {Options{StackBytes: 65537}, "stack-bytes"},
		{Options{StackBytes: -1}, "stack-bytes"}, {Options{UserFrames: 1001}, "user-frames"}, {Options{UserFrames: -1}, "user-frames"},
	} {
		_, err := Open(c.o)
		var bad *engine.OptionError
		if !errors.As(err, &bad) || bad.Option != c.name {
			t.Errorf("%+v: %v, want an error of %s", c.o, err, c.name)
		}
	}
}

// addUser adds one thread to a sum, as the format says it.
func addUser(sum *kcdata.LinuxUserTaken, w *kcdata.LinuxUserWalk) {
	has := func(flags uint32) uint64 {
		if w.Flags&flags != 0 {
			return 1
		}
		return 0
	}
	sum.Threads++
	sum.Walked += has(kcdata.UserWalked)
	sum.PagedOut += has(kcdata.UserPagedOut | kcdata.UserNoPage)
	sum.Links += uint64(w.Links)
	sum.Bytes += uint64(w.Bytes)
	sum.Absent += uint64(w.Absent)
	sum.Refused += uint64(w.Refused)
	sum.Translations += uint64(w.Translations)
}
