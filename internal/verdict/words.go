package verdict

import (
	"stackshot/internal/show"
	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// words are those for a kind of wait. One of noun, thing and state is set.
type words struct {
	verb  string // "" for "waits for"
	noun  string // of what threads share: "the mutex 0x5570", "a mutex"
	thing string // of all else, with its article
	state string // instead of verb and thing
}

var kinds = map[waits.Kind]words{
	waits.Mutex:      {noun: "kernel mutex"},
	waits.Semaphore:  {noun: "kernel semaphore"},
	waits.RWSem:      {noun: "kernel rwsem"},
	waits.RWSemRead:  {verb: "waits for read access to", noun: "kernel rwsem"},
	waits.RWSemWrite: {verb: "waits for write access to", noun: "kernel rwsem"},
	waits.RTMutex:    {noun: "kernel rt_mutex"},

	waits.UserMutex:     {noun: "mutex"},
	waits.UserRWLock:    {noun: "read-write lock"},
	waits.UserPIMutex:   {noun: "PI mutex"},
	waits.UserJoin:      {thing: "the end of a thread"},
	waits.UserCondvar:   {noun: "condition variable"},
	waits.UserSemaphore: {noun: "semaphore"},
	waits.UserBarrier:   {noun: "barrier"},
	waits.GoRuntime:     {thing: "the Go runtime"},
	waits.RustLock:      {noun: "Rust lock"},
	waits.JavaMonitor:   {noun: "Java monitor"},
	waits.Futex:         {noun: "futex"},

	waits.ChildEnd: {thing: "a child"},
	waits.Vfork:    {thing: "its vfork child"},
	waits.Stopped:  {state: "is stopped by a signal"},
	waits.Traced:   {state: "is stopped by its tracer"},
	waits.Frozen:   {state: "is frozen"},
	waits.CPU:      {thing: "a CPU"},

	waits.Timer:      {thing: "a timer"},
	waits.Signal:     {thing: "a signal"},
	waits.PageFault:  {thing: "a page that it touched"},
	waits.Userfault:  {thing: "whoever serves its page fault (userfaultfd)"},
	waits.PageLock:   {thing: "a locked page"},
	waits.Writeback:  {thing: "the writing back of pages"},
	waits.BlockIO:    {thing: "block I/O"},
	waits.FileSystem: {thing: "a file system"},
	waits.NFS:        {thing: "an NFS server"},
	waits.FUSE:       {thing: "a FUSE server"},
	waits.Memory:     {thing: "free memory"},
	waits.RCU:        {thing: "an RCU grace period"},
	waits.Netlink:    {thing: "netlink"},
	waits.IOUring:    {thing: "io_uring"},
	waits.Poll:       {thing: "an event (poll, select, epoll)"},
	waits.Pipe:       {thing: "a pipe"},
	waits.Socket:     {thing: "a socket"},
	waits.Terminal:   {thing: "a terminal"},
	waits.FileLock:   {thing: "a file lock"},
	waits.Descriptor: {thing: "a descriptor"},
	waits.Completion: {thing: "something inside the kernel to complete"},
	waits.Workqueue:  {thing: "a work queue of the kernel"},
	waits.AtRest:     {state: "is at rest"},
	waits.Other:      {thing: "something that its stack does not tell"},
}

// wordsOf are the words for a kind, an unknown one too.
func wordsOf(k waits.Kind) words {
	if w, ok := kinds[k]; ok {
		return w
	}
	return words{thing: show.Clean(string(k))}
}

// Kind names a kind in a table.
func Kind(k waits.Kind) string {
	w := wordsOf(k)
	switch {
	case w.state != "":
		return w.state[len("is "):]
	case w.verb != "":
		return w.noun + w.verb[len("waits"):len(w.verb)-len(" to")]
	case w.noun != "":
		return w.noun
	}
	return w.thing
}

// evidence says where an edge comes from.
var evidence = map[waits.Evidence]string{
	waits.Field: "by the kernel's own field",
	waits.Scan:  "found on its kernel stack",
	waits.Word:  "by the words of the lock in its memory",
	waits.File:  "by the open file",
	waits.After: "read after the release",
	waits.Stack: "by the functions on its stack",
}

// Evidence says in plain words where a wait comes from, and what it is worth.
func Evidence(w *waits.Wait) string {
	var parts show.Parts
	parts.Add("%s", evidence[w.Evidence])
	parts.If(w.Confidence == waits.Likely, "probably")
	parts.If(w.When == waits.NotAtOne, "nothing was stopped")
	parts.If(w.When == waits.Later && w.Evidence != waits.After, "read after the release")
	return parts.Join(", ")
}

// reasons say why a culprit does not go on; "" with a Wait: that says it.
var reasons = map[waitgraph.Reason]string{
	waitgraph.Running:   "is running",
	waitgraph.Runnable:  "waits for a CPU",
	waitgraph.InD:       "is in uninterruptible sleep (D)",
	waitgraph.Stopped:   "is stopped by a signal",
	waitgraph.Traced:    "is stopped by its tracer",
	waitgraph.Frozen:    "is frozen",
	waitgraph.Dead:      "died with the lock held",
	waitgraph.Asleep:    "is asleep",
	waitgraph.Outside:   "is not in this file",
	waitgraph.MissedCPU: "ran on a CPU that did not come to the stop",
}
