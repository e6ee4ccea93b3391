package waitgraph

import (
	"hash/maphash"
	"regexp"
	"slices"
	"strings"

	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// site is a function in which a thread is, and by which functions it was called. A process's first thread is called
// by others than its further ones, so of it only the function counts, and for it.
type site struct {
	function
	below uint64 // the hash of those; ofFirst, forFirst
}

const (
	ofFirst  = 1 // the first thread of a process is there, whoever called it
	forFirst = 2 // a further thread is there, as the first one sees it
)

// function is one that a frame is in. Of one without a name only the file is known, and about where.
type function struct {
	name, module string
	begin        uint64 // in its page: the functions of one generic have one name, and processes differ by pages
	part         uint64 // of the address, in pieces of partSize; 0: it has a name
}

// partSize: two addresses without names in the same or in neighbouring parts are taken for one function's.
const partSize = 1 << 9

const pageSize = 1 << 12

// loops are where some threads wait for news: in which functions, each on the stack of a thread.
type loops struct {
	accepts *kcdata.Thread // the lowest that waits for the next connection; nil: none does
	at      map[site][]*kcdata.Thread
	like    map[string][]*kcdata.Thread // those that wait at files, by the stems of their names
}

// loopsOf are those of a node: a thread, or all threads of a process. They are found out once.
func (g *graph) loopsOf(v int32) *loops {
	o := &g.nodes[v].owner
	if g.isProcess(v) {
		return g.loopsIn(o.Task, o.Task.Threads)
	}
	return g.loopsIn(o.Thread, []*kcdata.Thread{o.Thread})
}

func (g *graph) loopsIn(of any, threads []*kcdata.Thread) *loops {
	l := g.loops[of]
	if l != nil {
		return l
	}
	l = &loops{at: map[site][]*kcdata.Thread{}, like: map[string][]*kcdata.Thread{}}
	g.loops[of] = l
	for _, th := range threads {
		v, there := g.at[th]
		if !there || v >= g.waiting || !forNews(g.nodes[v].wait) {
			continue
		}
		w := g.nodes[v].wait
		if isAccept(w) && (l.accepts == nil || th.ID < l.accepts.ID) {
			l.accepts = th
		}
		if sleepsAtFile(w.Kind) {
			l.like[stem(th.Name)] = append(l.like[stem(th.Name)], th)
		}
		for _, s := range sites(functionsOf(w.Task, th)) {
			if isFirst(w) {
				l.add(site{s.function, ofFirst}, th)
				continue
			}
			l.add(s, th)
			l.add(site{s.function, forFirst}, th)
		}
	}
	return l
}

// stem is a thread's name without its last number: "pool-1-thread-2" is a thread of the same pool as "pool-1-thread-13", and not
// as "pool-2-thread-2".
func stem(name string) string {
	const digits = "0123456789"
	end := strings.LastIndexAny(name, digits) + 1
	return strings.TrimRight(name[:end], digits) + name[end:]
}

// isFirst reports whether w's thread is the first of its process.
func isFirst(w *waits.Wait) bool { return w.Thread.ID == w.Task.ID }

// add adds a thread, once for a function that calls itself.
func (l *loops) add(s site, th *kcdata.Thread) {
	if in := l.at[s]; len(in) == 0 || in[len(in)-1] != th {
		l.at[s] = append(in, th)
	}
}

// in are those of the threads that are where w's thread takes its lock, which is one of locks.
func (l *loops) in(w *waits.Wait, locks []site) (all []*kcdata.Thread) {
	for _, s := range locks {
		also := site{s.function, ofFirst}
		if isFirst(w) {
			s.below = forFirst
		}
		all = slices.Concat(l.near(s), l.near(also))
		if len(all) > 0 {
			break
		}
	}
	return all
}

// near are the threads in s, or without a name in a part beside it.
func (l *loops) near(s site) []*kcdata.Thread {
	if s.name != "" {
		return l.at[s]
	}
	all := slices.Clone(l.at[s])
	for _, part := range []uint64{s.part - 1, s.part + 1} {
		s.part = part
		all = append(all, l.at[s]...)
	}
	return all
}

// functionsOf are those of t's user stack, leaf first.
func functionsOf(task *kcdata.Task, t *kcdata.Thread) []function {
	out := make([]function, len(t.User))
	for i, addr := range t.User {
		f := task.UserSymbols.Function(t.UserPlace(i))
		out[i] = function{name: f.Name, module: f.Module}
		if f.Name == "" {
			out[i].part = 1 + addr/partSize
		} else {
			out[i].begin = (addr - f.Offset) % pageSize
		}
	}
	return out
}

var siteSeed = maphash.MakeSeed()

// sites are where the frames of a stack are.
func sites(stack []function) []site {
	out := make([]site, len(stack))
	var below uint64
	for i := len(stack) - 1; i >= 0; i-- {
		out[i] = site{stack[i], below}
		below = maphash.Comparable(siteSeed, out[i])
	}
	return out
}

// locksAt is where w's thread takes the lock that it waits for: in the function that calls the lock. One without a name
// in a library of its own may belong to the lock, so that the next one counts, too. nil: it is not known,
// without the lock's functions on the stack. That an interpreter is in a function says nothing of
// where its program is.
func (g *graph) locksAt(w *waits.Wait) []site {
	stack := functionsOf(w.Task, w.Thread)
	i := 0 // behind the last function that takes it; libraries have some without names between
	for k := range stack {
		if g.named(stack[k].name).takes {
			i = k + 1
		} else if stack[k].name != "" {
			break
		}
	}
	if i == 0 || i == len(stack) || slices.ContainsFunc(stack[i:], func(f function) bool { return g.named(f.name).interprets }) {
		return nil
	}
	n := 1
	if i+1 < len(stack) && stack[i].name == "" && stack[i].module != stack[i+1].module {
		n = 2
	}
	return sites(stack)[i : i+n]
}

// meaning is what the name of a function tells.
type meaning struct{ takes, interprets, javasOwn bool }

// named is what a name tells. It is found out once.
func (g *graph) named(name string) meaning {
	m, known := g.names[name]
	if !known {
		m = meaning{takes: takesLock.MatchString(name) && !hasLock.MatchString(name), interprets: interprets.MatchString(name), javasOwn: javasOwn.MatchString(name)}
		g.names[name] = m
	}
	return m
}

var (
	// takesLock matches the names of functions by which a program takes a lock, and of the system calls
	// in them.
	takesLock = regexp.MustCompile(`(^|[^bcBC])lock|Lock|LOCK|(?i:mutex|futex|fcntl|parking_lot|criticalsection|acquire(_ex)?$|^sem(timed)?op$|^syscall$)`)
	// hasLock matches names that those, too, match, of functions that do something else.
	hasLock = regexp.MustCompile(`(?i)unlock|locked|deadlock`)
	// javasOwn matches those of the threads of Java's virtual machine that run no program's code.
	javasOwn = regexp.MustCompile(`^VMThread::(loop|run)|^(WatcherThread|ServiceThread|MonitorDeflationThread|NMethodSweeper|(Abstract)?GangWorker|WorkerThread|ConcurrentGCThread)::|^CompileBroker::compiler_thread_loop|^(signal|attach_listener)_thread_entry`)
	// interprets matches the functions of interpreters that run a program's own.
	interprets = regexp.MustCompile(`^_?PyEval|^Perl_runops|^(rb_)?vm_exec|^execute_ex|^zend_execute|^lua(V_exec|D_|_callk|_pcallk)|^lj_|JavaCalls|^mono_|^v8::|^Builtins_|^exec_byte_code`)
)
