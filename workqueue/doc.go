// Package workqueue hands the tasks of a census to the workers of all CPUs: one
// producer fills, many consumers drain at the same time.
//
// There are two queues on machines with fast and slow cores, one elsewhere. The
// queue of an item is min(threads·(nq-1)/10, nq-1): of two, ten threads or more
// are hard. P cores take hard items first, E cores easy ones, then the other
// queue, so that the longest tasks do not start last on the slowest cores. An
// item is a whole task, or a part of one (first thread, count), so that one
// process of thousands of threads does not end up on one CPU.
//
// Memory comes from the caller and may be a mapped BPF map: fixed layout, no
// pointers, so the in-kernel engine can work on the very same bytes.
//
// # Layout, version 1
//
// Offsets in bytes, words in the machine's byte order, c the capacity.
//
//	    0 u32 magic 0x51574b53   4 u32 version   8 u32 capacity   12 u32 queues
//	  128 u32 pushed  132 u32 refused
//	  256 u32 populated
//	  384 u32 easy tail             512 u32 easy head
//	  640 u32 hard tail             768 u32 hard head
//	  896 slots[1024] of 64:        0 u64 waited_ns   8 u64 waits   16 u64 taken
//	66432 items[c] of 16:           0 u32 index   4 s32 tgid   8 s32 first_tid   12 u32 count
//	66432 + 16c  u32 easy numbers[c]
//	66432 + 20c  u32 hard numbers[c]
//
// The items lie in push order, once; a queue is an array of their numbers with
// two ends. So one capacity serves both queues however the tasks divide, and
// what is left merges back into census order by number. On SMP only the first
// queue (easy) is used. No place is used twice between Resets: head and tail
// only grow, and a compare-and-swap cannot be fooled by a value come round.
//
// # Pads
//
// 128 bytes each (x86 fetches lines of 64 in pairs, arm64 lines go up to 128)
// for the producer's words, populated, and each end of each queue: idle
// consumers poll populated and tail, busy ones swap head, and neither may take
// from the producer the line it writes next. A slot has 64: its CPU alone writes
// it, about once per item.
//
// # Fields
//
//	field           written by                     read by         ordered by
//	header          New; nobody else runs          the BPF engine  magic, exchanged last
//	pushed,refused  the producer                   producer, after count only
//	items, numbers  the producer, once             who claimed it  tail
//	tail            the producer                   consumers       exchange
//	populated       the producer, last             consumers       exchange
//	head            consumers                      consumers       compare-and-swap
//	slots           the worker in that slot        after           count only
//
// # Memory order
//
// The producer writes item and number, then exchanges tail: whoever sees the
// tail sees the item. Populated is exchanged last: whoever sees it sees the last
// tail. A consumer reads populated, then head, then tail, then swaps head, then
// reads number and item. In Go all of these are sequentially consistent: loads,
// exchanges, swaps. A load takes no line from anybody.
//
// BPF must publish by __sync_lock_test_and_set (tail, populated) and claim by
// __sync_val_compare_and_swap. It polls by plain loads: an atomic that leaves the
// word as it was still takes the line, and with many idle CPUs the producer waits
// for it at each push (BenchmarkIdlePollers). Plain loads order nothing on arm64, so
// what they bring is used as follows. A swap of head that succeeds is a full barrier:
// number and item are read after the tail that covers them. Lanes found empty mean
// nothing yet; once populated is seen, the consumer observes populated, and reads
// both lanes again. Where head is above tail, it may be that tail was read first: the
// consumer observes head, then tail, and believes these. To observe is a fetch-add of
// 0 whose result is used, and of whose 0 the compiler does not know: of a known one
// clang makes a fetch-or, which on x86 is a loop; an add whose result is dropped
// compiles to one without order. A test of internal/bpf decodes the atomics of the
// committed objects.
//
// # Invariants
//
//  1. The layout is the drawing above.
//  2. Each pushed item is claimed at most once, and exactly once if nobody
//     stops: a task missing from the file, or twice in it, is a lie.
//  3. An item is read only by who claimed it, after the tail that covers it.
//  4. Drained is said only if populated was read before both queues were found
//     empty. Read after them, an item pushed in between is left behind.
//  5. Taken and Left together are what was pushed; Left is in census order.
//     An item whose worker died after claiming it counts as taken.
//  6. Queue by thread count, order by CPU kind, as above.
//  7. Words that contradict each other end in Invalid, never in a loop or an
//     index outside.
//  8. Waiting is measured from the turn that found nothing to the turn that
//     found something, per slot, and only before populated.
//  9. Stop condition and deadline are read on every turn, before anything is
//     taken: a wait without an end holds the machine.
//  10. Push and Next allocate nothing and take no lock: the Go threads that
//     could let go of it do not run.
//
// Push and Next are built of steps with one access to shared memory each;
// model_test.go runs these very steps in every order (2, 3 and 4). That covers
// orders of steps, not weak memory: the exchanges above are what forbids more.
package workqueue
