// Package latency says what a snapshot cost the machine, and how long the
// machine's own threads have waited: pure functions of decoded files.
//
// Two kinds of time meet here. What the snapshotter did (phases of the pause,
// tries, cost of a task or thread) is in ns of CLOCK_MONOTONIC or in ticks of
// the file's time base. What the machine did (run delay, ages of waits and
// sleeps) is in the scheduler's clocks, one per CPU, and only model.Clock compares
// them.
//
// Promises:
//
//	L1  Missing is never zero: what was not measured is nil, absent from the
//	    JSON, and "not measured" in the text.
//	L2  An age is "at most", "about" where only another CPU's clock could be read,
//	    and unknown where the clocks cannot be compared.
//	L3  Percentiles are order statistics (nearest rank): each is a value that
//	    was measured.
//	L4  No file makes it panic, divide by zero or add up to less than a part;
//	    no name reaches the output raw.
package latency
