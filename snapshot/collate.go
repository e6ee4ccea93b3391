package snapshot

import (
	"encoding/binary"
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
type counts struct {
	tasks, threads int
	user           kcdata.LinuxUserTaken
}

// collate streams out the file: pre section, tasks in census order, post
// section. It reads the workers' bytes with the same distrust as any file: a
// task that does not parse is left out and named.
func (s *Session) collate(r Request, sc scope, c *captured) (*Result, error) {
	out := &counter{to: r.Output}
	c.at = momentOf(c.capture.StopNs)
	c.warnings = append(append([]kcdata.Warning{}, s.warnings...), c.warnings...)
	s.stateWarnings(c)
	if r.Pids == nil {
		s.reconcile(c)
	} else {
		s.reconcileAsked(c)
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
	n, short, err := s.writeTasks(out, c, samples)
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
	res.Warnings = append(slices.Clone(res.Warnings), short...)
	res.Tasks, res.Threads, res.Bytes = n.tasks, n.threads, out.n
	if c.second != nil {
		res.Compared, res.Ran = int(c.second.compared), int(c.second.ran)
	}
	res.LeftOut, res.Vanished, res.Seen = c.leftOut(), int(c.capture.Vanished), c.seen()
	return res, nil
}

// writeTasks merges the parts by census index. Of each task the parts come
// together to one container; what is read from /proc after the release is put
// before its end. short warns of stacks that lack something.
func (s *Session) writeTasks(out io.Writer, c *captured, samples *placer) (n counts, short []kcdata.Warning, err error) {
	f := s.newFinisher(out, c)
	list := c.inOrder()
	for i := 0; i < len(list); {
		first := i
		for i < len(list) && list[i].item.Index == list[first].item.Index {
			i++
		}
		var spent cost
		var pieces [][]byte
		for _, p := range list[first:i] {
			spent, pieces = spent.plus(p.cost), append(pieces, p.pieces...)
		}
		t, err := openTask(c.second.of(list[first]), pieces...)
		if err != nil {
			for _, p := range list[first:i] {
				c.failed = append(c.failed, failure{item: p.item, reason: kcdata.LeftOutError, errno: badMessage})
			}
			c.warn("task_unreadable", fmt.Sprintf("task %d: %v", list[first].item.Tgid, err))
			continue
		}
		n.tasks++
		n.threads += len(t.threads)
		for i := range t.threads {
			if w := t.threads[i].user.Walk; w != nil {
				n.addUser(w)
			}
		}
		if err := samples.names.addresses(t); err != nil {
			return n, nil, err
		}
		if err := samples.place(t); err != nil {
			return n, nil, err
		}
		if err := f.task(t, spent); err != nil {
			return n, nil, err
		}
	}
	err = f.end()
	return n, f.warnings(), err
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
