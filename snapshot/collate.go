package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"stackshot/kcdata"
	"stackshot/workqueue"
)

var pageSize = os.Getpagesize()

func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// counts are what a walk over the collated tasks found, whatever the workers
// said.
type counts struct{ tasks, threads int }

// collate streams out the file: pre section, tasks in census order, post
// section. It reads the workers' bytes with the same distrust as any file: a
// task that does not parse is left out and named.
func (s *Session) collate(r Request, sc scope, c *captured) (*Result, error) {
	out := &counter{to: r.Output}
	c.warnings = append(append([]kcdata.Warning{}, s.warnings...), c.warnings...)
	s.stateWarnings(c)
	if r.Pids == nil {
		s.reconcile(c)
	}
	pre, err := s.preSection(sc, c)
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(pre); err != nil {
		return nil, err
	}
	names := s.newNames()
	samples := newPlacer(c, names, s.options.Redact)
	n, err := s.writeTasks(out, c, samples)
	if err != nil {
		return nil, err
	}
	if r.Pids == nil { // else threads of other tasks have no place, and nobody misses them
		samples.lost(c)
	}
	c.finishCounts(sc.pids != nil)
	post, err := s.postSection(c, n, names)
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(post); err != nil {
		return nil, err
	}
	res := newResult(c)
	res.Tasks, res.Threads, res.Bytes = n.tasks, n.threads, out.n
	if c.second != nil {
		res.Compared, res.Ran = int(c.second.compared), int(c.second.ran)
	}
	res.LeftOut, res.Vanished = c.leftOut(), int(c.capture.Vanished)
	return res, nil
}

// writeTasks merges the parts by census index. Of each task the parts come
// together to one container; what is read from /proc after the release is put
// before its end.
func (s *Session) writeTasks(out io.Writer, c *captured, samples *placer) (counts, error) {
	var n counts
	e := newEnricher(s.proc, s.options.Redact, s.options.Latency != LatencyOff)
	list := c.inOrder()
	var buf []byte // one for all tasks
	for i := 0; i < len(list); {
		first := i
		for i < len(list) && list[i].item.Index == list[first].item.Index {
			i++
		}
		buf = joinParts(buf, list[first:i])
		var spent cost
		for _, p := range list[first:i] {
			spent = spent.plus(p.cost)
		}
		t, err := s.openTask(buf, c.second.of(list[first]))
		if err != nil {
			c.failed = append(c.failed, failure{item: list[first].item, reason: kcdata.LeftOutError, errno: badMessage})
			c.warn("task_unreadable", fmt.Sprintf("task %d: %v", list[first].item.Tgid, err))
			continue
		}
		n.tasks++
		n.threads += len(t.threads)
		if err := samples.names.addresses(t); err != nil {
			return n, err
		}
		t.addFaults()
		if err := samples.place(t); err != nil {
			return n, err
		}
		t.insert(t.end, e.items(t, spent))
		if err := t.write(out); err != nil {
			return n, err
		}
	}
	return n, nil
}

// joinParts puts the parts of one task together behind a begin marker, in buf's
// memory, with room for an end marker after them.
func joinParts(buf []byte, parts []recorded) []byte {
	size := len(beginMarker) + len(endMarker)
	for _, p := range parts {
		for piece := range p.stream {
			size += len(piece)
		}
	}
	buf = append(slices.Grow(buf[:0], size), beginMarker...)
	for _, p := range parts {
		for piece := range p.stream {
			buf = append(buf, piece...)
		}
	}
	return buf
}

// taskBytes is one task's container, found whole, and what changes on its way
// out: fields are written over in body, items come and go by edits.
type taskBytes struct {
	body    []byte // with a begin marker before it
	end     int    // offset of the container's end item
	threads []threadAt
	linux   kcdata.LinuxTask
	snap    int    // offset of the TASK_SNAPSHOT's payload; 0: none
	minor   uint64 // faults of the threads that live
	major   uint64
	second  *recheck
	edits   []edit
}

// threadAt is where one thread's container lies in body: offsets of payloads,
// 0: not there or short.
type threadAt struct {
	id     uint64
	snap   int // THREAD_SNAPSHOT
	linux  int // LINUX_THREAD
	kernel stackAt
	user   bool // has a user stack
	taken  bool // the stop took it off its CPU
	end    int  // offset of the container's end item
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
		t.threads = append(t.threads, threadAt{id: it.ContainerID()})
	case it.Type == kcdata.TypeContainerEnd && it.Depth == 0:
		t.end = it.Offset
	case it.Type == kcdata.TypeTaskSnapshot:
		t.snap = it.Offset + itemHeader
	case it.Type == kcdata.TypeLinuxTask:
		return kcdata.Unmarshal(it.Data, &t.linux)
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
	payload := it.Offset + itemHeader
	switch {
	case it.Type == kcdata.TypeContainerEnd && it.Depth == 1:
		th.end = it.Offset
	case it.Type == kcdata.TypeThreadSnapshot && len(it.Data) >= sizeOfThreadSnapshot:
		th.snap = payload
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
		th.taken = lx.OnCPU != 0 && lx.Present&(kcdata.ThreadIsSelf|kcdata.ThreadIsIdle) == 0
		return err
	case it.Type == kcdata.TypeArray:
		switch elem, _, count := it.Elem(); elem {
		case kcdata.TypeKernStackLR64:
			th.kernel = stackAt{payload, count}
		case kcdata.TypeUserStackLR64:
			th.user = true
		}
	}
	return nil
}

// addFaults makes ts_faults and ts_pageins what they mean, the task's own: the
// record in the window has those of its dead threads only. /proc gives the sum.
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

// leftOut is the list of the file.
func (c *captured) leftOut() []kcdata.LinuxLeftOut {
	out := []kcdata.LinuxLeftOut{}
	for _, f := range c.failed {
		out = append(out, kcdata.LinuxLeftOut{
			Tgid: uint32(f.item.Tgid), Reason: f.reason, Errno: uint32(f.errno), Threads: f.item.Count,
		})
	}
	return out
}

// finishCounts separates tasks that ended on their own, which nobody misses,
// from what is left out. A task asked for by number is missed.
func (c *captured) finishCounts(asked bool) {
	kept := c.failed[:0]
	for _, f := range c.failed {
		if f.reason == kcdata.LeftOutVanished && !asked {
			c.capture.Vanished++
			continue
		}
		kept = append(kept, f)
	}
	c.failed = kept
	c.capture.LeftOut = uint32(len(kept))
}

// priorNs is the stopped time of the tries before the last.
func (c *captured) priorNs() uint64 {
	last := c.capture.ArrivalNs + c.capture.WindowNs + c.capture.ReleaseNs
	if c.capture.Tries < 2 || c.capture.StoppedNs < last {
		return 0
	}
	return c.capture.StoppedNs - last
}

func itemOf(tgid, threads int) workqueue.Item {
	return workqueue.Item{Tgid: int32(tgid), Count: uint32(threads)}
}

// counter counts what goes out.
type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	if c.to == nil {
		return len(b), nil
	}
	n, err := c.to.Write(b)
	if err != nil {
		return n, fmt.Errorf("write the snapshot at byte %d: %w", c.n-int64(len(b)), err)
	}
	return n, nil
}

// The markers that make a piece of a snapshot a buffer of its own.
var beginMarker, endMarker = markers()

func markers() (begin, end []byte) {
	w := kcdata.NewWriter(make([]byte, 2*itemHeader))
	if err := errors.Join(w.Begin(kcdata.MagicStackshot), w.End()); err != nil {
		panic(err) // a buffer of two headers holds two headers
	}
	return w.Written()[:itemHeader], w.Written()[itemHeader:]
}
