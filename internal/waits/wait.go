package waits

import (
	"stackshot/internal/model"
	"stackshot/kcdata"
)

// Wait is what one thread waits for.
type Wait struct {
	Task       *kcdata.Task
	Thread     *kcdata.Thread
	State      model.State
	Age        model.Age // of the state: the wait is not older
	Kind       Kind
	Resource   Resource // what others may wait for, too; zero: nothing that has a name
	Owners     []Owner  // who can end the wait; none: not known
	AnyOwner   bool     // one of the owners is enough to end it (a pipe's writers); else all must act
	Evidence   Evidence
	Confidence Confidence
	When       When
	Timed      bool               // it ends by itself at a timeout
	Again      bool               // the thread looks again from time to time for what it waits for: its age is that of the last look at least
	Notes      []string           // what is to be said beside: a disagreement, an owner that died; clean sentences without a full stop
	File       *OpenFile          // the open file that it waits at; nil: none, or not known
	Probably   *kcdata.LinuxMount // a guess: the frozen file system for which it waits, where no file of its call tells
	Function   string             // the kernel function in which a thread in D waits, as the kernel names it; "": not known
}

// OpenFile is the open file that a wait is for, with what was found out about its other end.
//
// Of a call with several descriptors (poll, select, epoll, splice) File is the one that matters:
// one by which an owner owes, if there is such a one; Owners are those of this one alone, and
// Others says how many descriptors may end the wait besides. With Others 0, Owners has everybody
// who can end it: if these have different ones of the files, the wait has no Resource.
type OpenFile struct {
	File   *kcdata.LinuxFile
	Socket *kcdata.LinuxSocket // nil: it is no socket
	Of     int                 // how many descriptors the call has; more than one: File is the one that matters
	Others int                 // of these, by how many somebody may end the wait who is not among the owners: the thread is not stuck only because they are
	Says   FileSays            // what is special about its other end
	Own    bool                // the waiting process has the other end open, too, beside the owners
	Remote string              // "192.0.2.7:5432" of a connection that leaves the machine, "server" of NFS; "" if not, or redacted
	Mount  *kcdata.LinuxMount  // of the file system that it waits for, or whose file it waits to lock; nil: not known
	Device string              // "nvme0n1": of the block device that it waits for
	Unread uint64              // Owed by the owners: bytes that lie unread at the other end
}

// FileSays is what is special about the other end of a file, by its stable name in JSON.
// It goes with no owners but where it says so.
type FileSays string

const (
	NoEnd     FileSays = "no_end"     // there is none: a pipe without writers, a socket whose peer is gone
	OwnEnd    FileSays = "own_end"    // the waiting process, which has one thread, itself holds the other end, and nobody else does; it is the one owner. Only where that is a mistake: it blocks, and has no handler for signals
	NotOpened FileSays = "not_opened" // a FIFO that nobody opened on the other side
	Elsewhere FileSays = "elsewhere"  // outside the machine; or in processes that the file does not have, which are then owners without a thread
	NotFound  FileSays = "not_found"  // nobody was found who has it
	NotLooked FileSays = "not_looked" // it was not looked for, or the pass did not come so far, or the thread had gone on
	Serves    FileSays = "serves"     // the thread waits for the next request, or for events of which none is owed to it: it is at rest, and nobody is to blame
)

// Kind is what a thread waits for, by its stable name in JSON. kinds.go has them all.
type Kind string

// Resource is something that threads wait for and threads hold. Equal resources are the same
// thing. It is comparable.
type Resource struct {
	Kind Kind
	Task uint64 // of a private futex and of Kind.IsQueued: the process (container id); of a lock on a part of a file: 1 + its first byte; else 0
	ID   uint64 // an address, or its number in a redacted file; of FUSE: the file system's device
}

// Relation is what an owner has to do with what is waited for.
type Relation string

const (
	Holds  Relation = "holds"  // a lock
	Last   Relation = "last"   // took a semaphore last, and may have given it up
	Child  Relation = "child"  // its end, or its stop, is waited for
	Joined Relation = "joined" // the thread whose end is waited for
	Tracer Relation = "tracer"
	Execs  Relation = "execs" // the vfork child
	Dumps  Relation = "dumps" // takes the core dump
	Reaps  Relation = "reaps" // the parent of a zombie that is waited for, and has not taken note of its end
	Runs   Relation = "runs"  // has the CPU that is waited for

	OtherEnd Relation = "other_end" // has the other end of a pipe, a socket, a terminal
	Listener Relation = "listens"   // listens for the connection that is waited for
	Server   Relation = "serves"    // answers the requests of a file system, the page faults of memory
	Pager    Relation = "pager"     // serves a userfaultfd
)

// Owner is a thread that can end a wait. Thread is nil if the file does not have it.
type Owner struct {
	Task     *kcdata.Task
	Thread   *kcdata.Thread
	Tid, Pid uint32 // in the recorded pid namespace
	Relation Relation
	Dead     bool         // it died with the lock held
	Forked   *kcdata.Task // it held the lock in this process, from which the one that waits was forked, and is not in that; nil: no such owner
	Whole    bool         // the process: any thread of Task can do it. Thread is then its leader, or if that ended its first thread, for its name. It may be the process that waits: its other threads can do it
	Owes     bool         // Whole: what it has to answer is known to lie with it: bytes unread, a connection not accepted, a request of a file system, a lock; or the waiter made the connection, and reads the answer. Without it nobody is to blame, but it may still be that nobody else can end the wait
}

// Evidence is where an edge comes from.
type Evidence string

const (
	Field Evidence = "field" // a field of the kernel
	Scan  Evidence = "scan"  // the scan of a kernel stack
	Word  Evidence = "word"  // words of user memory
	File  Evidence = "file"  // a file description
	After Evidence = "after" // read after the release
	Stack Evidence = "stack" // names of functions
)

// Confidence is how much an edge is worth.
type Confidence string

const (
	Sure   Confidence = "sure"
	Likely Confidence = "likely"
)

// When says at what moment a wait was read.
type When string

const (
	Window   When = "window"     // during the stop
	NotAtOne When = "not_at_one" // nothing was stopped
	Later    When = "after"      // after the release
)

// Waits are those of a snapshot.
type Waits struct {
	All        []*Wait                  // in file order
	Of         map[*kcdata.Thread]*Wait // nil entry: the thread does not wait
	Limits     []string                 // what this file cannot tell, and why; sentences without a full stop
	Unrecorded bool                     // the file has no records of waits: nobody is accused
	OneInstant bool                     // the file is of one instant: irqoff, preemptoff, or no thread ran
	CPUs       []kcdata.LinuxCPU        // of the snapshot: waitgraph looks for CPUs that did not come
}
