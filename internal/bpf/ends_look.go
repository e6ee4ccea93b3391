package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
)

// maxEnds is how many ends are kept at most.
const maxEnds = 100_000

// look is one pass.
type look struct {
	pass    *EndPass
	keys    *endKeys
	threads []WantedThread
	until   time.Time

	ask   endsObjectEndsAsk // as the programs left it
	found foundParts
}

// run asks for the threads last, so that what was found was found while they still waited.
func (l *look) run() (*FoundEnds, error) {
	if err := l.prepare(); err != nil {
		return nil, err
	}
	left := time.Until(l.until)
	if err := l.iterate(endsObjectProgLookAtFiles, l.until.Add(-left/8)); err != nil {
		return nil, err
	}
	files := l.ask
	out := &FoundEnds{Looked: files.Looked, Crowded: files.Crowded}
	if err := l.iterate(endsObjectProgLookAtThreads, l.until); err != nil {
		return nil, err
	}
	var err error
	if out.Waiters, err = l.waiters(l.ask.TimeUp == 0); err != nil {
		return nil, err
	}
	var more bool
	out.Ends, more = l.found.joined(l.keys, l.pass.most)
	out.FUSE = l.found.fuse
	out.TimeUp = files.TimeUp != 0 || l.ask.TimeUp != 0
	out.TooMany = files.TooMany != 0 || more
	return out, nil
}

// prepare fills the maps, which may hold another pass's.
func (l *look) prepare() error {
	p := l.pass
	if need := max(len(l.keys.list), len(l.threads)); need > p.room {
		if err := p.load(need); err != nil {
			return err
		}
	}
	maps := p.coll.Maps
	if err := errors.Join(
		emptied[endsObjectEndKey, endsObjectEndWanted](maps[endsObjectMapWanted], p.lastKeys),
		emptied[endsObjectThreadKey, endsObjectThreadAsked](maps[endsObjectMapThreads], p.lastThreads),
		emptied[uint64, uint32](maps[endsObjectMapServed], nil),
	); err != nil {
		return err
	}
	wanted := make([]endsObjectEndWanted, len(l.keys.list))
	for i := range wanted {
		wanted[i].Index = uint32(i)
	}
	keys, asked := l.threadKeys()
	p.lastKeys, p.lastThreads = l.keys.list, keys
	return errors.Join(filled(maps[endsObjectMapWanted], l.keys.list, wanted), filled(maps[endsObjectMapThreads], keys, asked))
}

func (l *look) threadKeys() (keys []endsObjectThreadKey, asked []endsObjectThreadAsked) {
	seen := map[endsObjectThreadKey]bool{}
	for _, t := range l.threads {
		key := endsObjectThreadKey{Start: t.Start, Tid: t.Tid}
		if seen[key] {
			continue
		}
		seen[key] = true
		keys = append(keys, key)
		asked = append(asked, endsObjectThreadAsked{Switches: t.Switches, Sends: t.Sends})
	}
	return keys, asked
}

func filled[K, V any](m *ebpf.Map, keys []K, values []V) error {
	if len(keys) == 0 {
		return nil
	}
	if _, err := m.BatchUpdate(keys, values, nil); err != nil {
		return fmt.Errorf("fill map of open files: %w", err)
	}
	return nil
}

// emptied takes out the keys that the last pass put in, and then whatever is left.
func emptied[K comparable, V any](m *ebpf.Map, last []K) error {
	if len(last) > 0 {
		if _, err := m.BatchDelete(last, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("empty map of open files: %w", err)
		}
	}
	var key K
	var value V
	var left []K
	it := m.Iterate()
	for it.Next(&key, &value) {
		left = append(left, key)
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("empty map of open files: %w", err)
	}
	for i := range left {
		if err := m.Delete(&left[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("empty map of open files: %w", err)
		}
	}
	return nil
}

// iterate runs one program to its end, or to the end of its time.
func (l *look) iterate(program string, until time.Time) error {
	asks := l.pass.coll.Maps[endsObjectMapAsks]
	l.ask = endsObjectEndsAsk{Deadline: monotonic(until), Flags: l.keys.asks, Most: uint32(l.pass.most)}
	if err := asks.Put(uint32(0), &l.ask); err != nil {
		return fmt.Errorf("ask for open files: %w", err)
	}
	var it Iterator
	if errno := it.Open(l.pass.coll.Programs[program].FD(), &Scope{}); errno != 0 {
		return fmt.Errorf("iterator %s: %w", program, errno)
	}
	defer it.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(int(it.file), buf)
		again := errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)
		if err != nil && !again {
			return fmt.Errorf("iterator %s: %w", program, err)
		}
		if err == nil {
			if e := l.found.parse(buf[:n]); e != nil {
				return e
			}
		}
		if err == nil && n == 0 || again {
			if e := asks.Lookup(uint32(0), &l.ask); e != nil {
				return fmt.Errorf("answer for open files: %w", e)
			}
			if n == 0 && err == nil || l.ask.TimeUp != 0 {
				return nil
			}
		}
	}
}

// Bits of a thread that was seen (THREAD_*).
const (
	threadSeen    = 1 << 0
	threadStill   = 1 << 1
	threadCatches = 1 << 2
)

// waiters: if all threads were looked at, one that was not seen is gone.
func (l *look) waiters(all bool) (map[capture.WaiterID]capture.Waiter, error) {
	out := map[capture.WaiterID]capture.Waiter{}
	n := len(l.pass.lastThreads)
	if n == 0 {
		return out, nil
	}
	keys, answers := make([]endsObjectThreadKey, n), make([]endsObjectThreadAsked, n)
	n, err := l.pass.coll.Maps[endsObjectMapThreads].BatchLookup(new(ebpf.MapBatchCursor), keys, answers, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) { // that is the end of the map
		return nil, fmt.Errorf("answer for threads: %w", err)
	}
	for i, a := range answers[:n] {
		if all || a.Flags&threadSeen != 0 {
			out[capture.WaiterID{Tid: keys[i].Tid, Start: keys[i].Start}] = capture.Waiter{
				Still: a.Flags&threadStill != 0, Catches: a.Flags&threadCatches != 0,
			}
		}
	}
	return out, nil
}
