package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"stackshot/internal/stacks"
	"stackshot/kcdata"
)

// taskBytes is one task's container, found whole, and what changes on its way
// out: fields are written over in body, items come and go by edits.
type taskBytes struct {
	body    []byte // with a begin marker before it
	end     int    // offset of the container's end item
	threads []threadAt
	linux   kcdata.LinuxTask
	exe     kcdata.LinuxTaskExe // zero: not recorded
	window  windowMaps
	maps    []kcdata.Mapping // executable mappings, ascending; by enrich
	load    loaded           // what else enrich found out of them
	text    []byte           // items; by enrich
	snap    int              // offset of the TASK_SNAPSHOT's payload; 0: none
	minor   uint64           // faults of the threads that live
	major   uint64
	second  *recheck
	edits   []edit
	late    bool // files of it were late: it waits for them
}

// threadAt is where one thread's container lies in body: offsets of payloads,
// 0: not there or short.
type threadAt struct {
	id      uint64
	snap    int // THREAD_SNAPSHOT
	linux   int // LINUX_THREAD
	kernel  stackAt
	stack   bool     // has a user stack
	sampled []uint64 // its addresses, where a sample has them
	user    stacks.Found
	taken   bool   // the stop took it off its CPU
	onCPU   int    // where it runs or ran; -1: nowhere
	ip      uint64 // where it was in user mode; 0: not recorded
	inner   uint32 // its number in its own pid namespace; 0: that of the machine's first
	end     int    // offset of the container's end item
}

// stackAt is where a stack's addresses lie in body: the payload of its array.
type stackAt struct{ off, count int }

// item is the whole item in body: its payload is padded to 16 bytes.
func (s stackAt) item() (off, size int) {
	return s.off - itemHeader, itemHeader + roundUp(8*s.count, 16)
}

// edit replaces cut bytes of the body at off by others. Whole items only: what
// goes out is made of the body's and put's items.
type edit struct {
	off, cut int
	put      []byte
}

// replace and insert take note of an edit; put stays the caller's until write.
// Of several insertions at one place the first comes first.
func (t *taskBytes) replace(off, cut int, put []byte) {
	t.edits = append(t.edits, edit{off, cut, put})
}

func (t *taskBytes) insert(off int, put []byte) { t.replace(off, 0, put) }

const itemHeader = 16

// openTask checks that buf holds exactly one task container, whole, and finds
// what collation needs of it.
func (s *Session) openTask(buf []byte, x *recheck) (*taskBytes, error) {
	t := &taskBytes{body: buf, second: x}
	whole := append(buf, endMarker...)
	r, err := kcdata.NewReader(whole)
	if err != nil {
		return nil, err
	}
	for it, err := range r.Items() {
		if err != nil {
			return nil, err
		}
		if err := t.visit(it); err != nil {
			return nil, err
		}
	}
	if t.end == 0 || t.end+itemHeader != len(buf) {
		return nil, fmt.Errorf("task container of %d bytes ends at %d", len(buf), t.end)
	}
	return t, nil
}

func (t *taskBytes) visit(it kcdata.Item) error {
	switch {
	case it.Type == kcdata.TypeContainerBegin && it.Depth == 0:
		if it.Offset != itemHeader {
			return fmt.Errorf("a second container at offset %d", it.Offset)
		}
	case it.Type == kcdata.TypeContainerBegin && it.ContainerType() == kcdata.TypeThread:
		t.threads = append(t.threads, threadAt{id: it.ContainerID(), onCPU: -1})
	case it.Type == kcdata.TypeContainerEnd && it.Depth == 0:
		t.end = it.Offset
	case it.Type == kcdata.TypeTaskSnapshot:
		t.snap = it.Offset + itemHeader
	case it.Type == kcdata.TypeLinuxTask:
		return kcdata.Unmarshal(it.Data, &t.linux)
	case it.Type == kcdata.TypeLinuxTaskExe:
		return kcdata.Unmarshal(it.Data, &t.exe)
	case t.window.visit(it):
	case len(t.threads) > 0 && t.threads[len(t.threads)-1].end == 0:
		return t.visitThread(&t.threads[len(t.threads)-1], it)
	}
	return nil
}

var (
	sizeOfLinuxThread    = kcdata.SizeOf(&kcdata.LinuxThread{})
	sizeOfThreadSnapshot = kcdata.SizeOf(&kcdata.ThreadSnapshot{})
)

// visitThread looks at an item between a thread's begin and its end.
func (t *taskBytes) visitThread(th *threadAt, it kcdata.Item) error {
	if ours, err := th.user.Visit(it); ours {
		return err
	}
	payload := it.Offset + itemHeader
	switch {
	case it.Type == kcdata.TypeContainerEnd && it.Depth == 1:
		th.end = it.Offset
	case it.Type == kcdata.TypeThreadSnapshot && len(it.Data) >= sizeOfThreadSnapshot:
		th.snap = payload
		stacks.SetFlags(t.body[payload:], func(flags uint64) uint64 { return flags }) // Truncated
	case it.Type == kcdata.TypeLinuxThread:
		if len(it.Data) >= sizeOfLinuxThread {
			th.linux = payload
		}
		var lx kcdata.LinuxThread
		err := kcdata.Unmarshal(it.Data, &lx)
		t.minor, t.major = t.minor+lx.MinFlt, t.major+lx.MajFlt
		if t.second != nil {
			t.second.look(&lx)
		}
		if lx.OnCPU != 0 {
			th.onCPU = int(lx.CPU)
		}
		th.taken = lx.OnCPU != 0 && lx.Present&(kcdata.ThreadIsSelf|kcdata.ThreadIsIdle) == 0
		return err
	case it.Type == kcdata.TypeLinuxSyscall && len(it.Data) >= 16:
		th.ip = binary.LittleEndian.Uint64(it.Data[8:])
	case it.Type == kcdata.TypeArray:
		switch elem, _, count := it.Elem(); elem {
		case kcdata.TypeKernStackLR64:
			th.kernel = stackAt{payload, count}
		case kcdata.TypeUserStackLR64:
			th.stack = true
		case kcdata.TypeLinuxThreadNS:
			if n := len(it.Data); n >= 8 { // {inode, tid}, outermost first
				th.inner = binary.LittleEndian.Uint32(it.Data[n-4:])
			}
		}
	}
	return nil
}

// addFaults makes ts_faults and ts_pageins what they mean, the task's own: the
// record in the window has those of its dead threads only, which signal_struct
// sums up (__exit_signal of kernel/exit.c). /proc gives the sum of both.
func (t *taskBytes) addFaults() {
	if t.snap == 0 || t.linux.Present&kcdata.TaskHasFaults == 0 {
		return
	}
	const faults, pageins = 60, 64 // offsets in task_snapshot_v2
	for _, f := range []struct {
		off int
		add uint64
	}{{faults, t.minor + t.major}, {pageins, t.major}} {
		b := t.body[t.snap+f.off:]
		binary.LittleEndian.PutUint32(b, binary.LittleEndian.Uint32(b)+uint32(f.add))
	}
}

// write streams the task, edits made.
func (t *taskBytes) write(out io.Writer) error {
	slices.SortStableFunc(t.edits, func(a, b edit) int { return a.off - b.off })
	from := itemHeader
	for _, e := range t.edits {
		if e.off < from || e.cut < 0 || e.off+e.cut > len(t.body) {
			return fmt.Errorf("task %d: an edit of bytes %d to %d, of %d, after one to %d", t.linux.Tgid, e.off, e.off+e.cut, len(t.body), from)
		}
		if err := writeAll(out, t.body[from:e.off], e.put); err != nil {
			return err
		}
		from = e.off + e.cut
	}
	return writeAll(out, t.body[from:])
}

func writeAll(out io.Writer, pieces ...[]byte) error {
	for _, b := range pieces {
		if len(b) == 0 {
			continue
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func (t *taskBytes) frame(s stackAt, i int) []byte { return t.body[s.off+8*i:][:8] }
