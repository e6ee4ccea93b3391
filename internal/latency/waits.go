package latency

import (
	"cmp"
	"slices"

	"stackshot/internal/account"
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// Waits follows the threads that sleep through the files of a series. It keeps a record of
// each thread and place, and nothing of a file, so its memory grows with the threads that there
// were, not with the files. The order in which files are added does not matter.
type Waits struct {
	boots   map[string]*boot
	NoBoot  int // files that do not say of which boot they are
	Twice   int // files with the moment of another: the same capture
	dropped int // waits beyond maxFollowed
}

// maxFollowed bounds the waits that are followed.
const maxFollowed = 1 << 20

// boot is one machine from one start to the next: the files of a series have one.
type boot struct {
	id, host    string
	moments     map[uint64]bool // CLOCK_MONOTONIC of each file
	first, last uint64
	waits       map[waitKey]*followed
	seen        map[[2]string]*visits // by command and place
	idle        int                   // idle kernel threads, the most that a file has
}

// visits counts the files in which somebody of a command was at a place.
type visits struct {
	files int
	last  uint64 // the file that was counted last
}

// waitKey is a thread at a place. Numbers are given again, so the start time belongs to it.
type waitKey struct {
	tgid, tid      uint64
	start          uint64
	command, place string
}

// followed says in which files a thread was at a place.
type followed struct {
	files       int
	first, last uint64
	least, most uint64 // of its switches
	unknown     bool   // a file does not have them
	rests       bool   // in a file it was where threads rest
}

// Add adds a file. Only these threads count; nil: all.
func (w *Waits) Add(s *kcdata.Snapshot, only map[*kcdata.Thread]bool) {
	if s.BootID == "" || !s.HasMachine {
		w.NoBoot++
		return
	}
	b, at := w.boot(s), s.Machine.MonotonicNs
	if b.moments[at] {
		w.Twice++
		return
	}
	if len(b.moments) == 0 {
		b.first = at
	}
	b.moments[at] = true
	b.first, b.last = min(b.first, at), max(b.last, at)
	of, idle := waits.Of(s), 0
	for _, task := range s.Tasks {
		for _, th := range task.Threads {
			switch class := model.StateOf(th).Class; {
			case only != nil && !only[th]:
			case th.HasLinux && model.IsIdleKernel(task, th, class):
				idle++
			default:
				w.thread(b, at, s, of.Of[th], task, th)
			}
		}
	}
	b.idle = max(b.idle, idle)
}

func (w *Waits) boot(s *kcdata.Snapshot) *boot {
	if w.boots == nil {
		w.boots = map[string]*boot{}
	}
	b := w.boots[s.BootID]
	if b == nil {
		b = &boot{id: show.Clean(s.BootID), host: show.Clean(s.Hostname), moments: map[uint64]bool{}, waits: map[waitKey]*followed{}, seen: map[[2]string]*visits{}}
		w.boots[s.BootID] = b
	}
	return b
}

// thread notes that a thread sleeps, in D or not.
func (w *Waits) thread(b *boot, at uint64, s *kcdata.Snapshot, wait *waits.Wait, task *kcdata.Task, th *kcdata.Thread) {
	l := &th.Linux
	if !th.HasLinux || l.Present&(kcdata.ThreadIsSelf|kcdata.ThreadIsIdle) != 0 {
		return
	}
	if class := model.StateOf(th).Class; class != model.Blocked && class != model.Sleeping {
		return
	}
	key := waitKey{tgid: task.ID, tid: th.ID, start: l.StartBoottime, command: show.Clean(task.Name), place: place(s, th)}
	f, switches := b.waits[key], l.Nvcsw+l.Nivcsw
	if f == nil {
		if len(b.waits) >= maxFollowed {
			w.dropped++
			return
		}
		f = &followed{first: at, last: at, least: switches, most: switches}
		b.waits[key] = f
	}
	f.files++
	b.visit([2]string{key.command, key.place}, at)
	f.first, f.last = min(f.first, at), max(f.last, at)
	f.least, f.most = min(f.least, switches), max(f.most, switches)
	f.rests = f.rests || wait != nil && wait.Rests()
	f.unknown = f.unknown || key.place == "" || l.Present&kcdata.ThreadHasSwitches == 0 || l.Present&kcdata.ThreadHasStart == 0
}

// Series is where the threads of one machine waited, over at least two files of one boot.
type Series struct {
	BootID     string  `json:"boot_id"`
	Hostname   string  `json:"hostname,omitempty"`
	Files      int     `json:"files"`
	SpanNs     uint64  `json:"span_ns"` // from the first to the last
	PlaceCount int     `json:"place_count"`
	Idle       int     `json:"idle_kernel_threads"` // in no place; the most that a file has
	Places     []Place `json:"places"`
}

// Place is where threads of one command waited.
type Place struct {
	Place    string       `json:"place"` // kernel symbol; "": not known
	Command  string       `json:"command"`
	Files    int          `json:"files"`    // at least one thread was seen there in so many of the series' files
	Share    float64      `json:"share"`    // of the files, 0 to 1
	Threads  int          `json:"threads"`  // that were seen there
	Appeared int          `json:"appeared"` // of these, not there in the first file
	Gone     int          `json:"gone"`     // of these, not there in the last file
	Stuck    int          `json:"stuck"`    // of these, there in every file with the same count of switches, and not at rest
	Example  *account.Who `json:"example,omitempty"`
}

// visit counts a file once for a place.
func (b *boot) visit(where [2]string, at uint64) {
	v := b.seen[where]
	if v == nil {
		v = &visits{}
		b.seen[where] = v
	}
	if v.files == 0 || v.last != at { // a file is added as a whole
		v.files, v.last = v.files+1, at
	}
}

// places sums up the waits by place and command.
func (b *boot) places() []Place {
	sums := map[[2]string]*Place{}
	for key, f := range b.waits {
		where := [2]string{key.command, key.place}
		p := sums[where]
		if p == nil {
			files := b.seen[where].files
			p = &Place{Place: key.place, Command: key.command, Files: files, Share: float64(files) / float64(len(b.moments))}
			sums[where] = p
		}
		p.add(key, f, b)
	}
	out := make([]Place, 0, len(sums))
	for _, p := range sums {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(b.Stuck, a.Stuck), cmp.Compare(b.Share, a.Share), cmp.Compare(b.Threads, a.Threads),
			cmp.Compare(a.Command, b.Command), cmp.Compare(a.Place, b.Place))
	})
	return out
}

func (p *Place) add(key waitKey, f *followed, b *boot) {
	p.Threads++
	if f.first > b.first {
		p.Appeared++
	}
	if f.last < b.last {
		p.Gone++
	}
	if f.unknown || f.rests || f.files < len(b.moments) || f.least != f.most {
		return
	}
	p.Stuck++
	if tid := show.Number(key.tid); tid != nil && (p.Example == nil || *tid < *p.Example.Tid) {
		p.Example = &account.Who{ID: show.Hex(key.tid), Pid: show.Number(key.tgid), Tid: tid, Task: key.command}
	}
}

// All are the series, and of each the first top places, stuck first. Boots with one file are none.
func (w *Waits) All(top int) []Series {
	out := []Series{}
	for _, b := range w.boots {
		if len(b.moments) < 2 {
			continue
		}
		places := b.places()
		out = append(out, Series{b.id, b.host, len(b.moments), b.last - b.first, len(places), b.idle, first(places, top)})
	}
	slices.SortFunc(out, func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.BootID, b.BootID))
	})
	return out
}

// lone counts the files that are the only one of their boot.
func (w *Waits) lone() (n int) {
	for _, b := range w.boots {
		if len(b.moments) == 1 {
			n++
		}
	}
	return n
}
