// Package latency says what a capture cost the machine, and how long the
// machine's own threads had waited. It consists of pure functions of decoded files.
//
// It handles two kinds of time. What the snapshotter did (phases of the pause,
// tries, cost of a task or thread) is in ns of CLOCK_MONOTONIC or in ticks of
// the file's time base. What the machine did (run delay, ages of waits and
// sleeps) is in the scheduler's clocks, one per CPU; only model.Clock compares
// them.
//
// What it promises:
//
//	L1  A missing value is not a zero: what was not measured is nil, absent from the
//	    JSON, and "not measured" in the text.
//	L2  An age is "at most" so long; it is "about" so long if only another CPU's clock
//	    could be read; it is unknown if the clocks cannot be compared.
//	L3  Percentiles are order statistics (nearest rank): each is a value that
//	    was measured.
//	L4  No file makes it panic or divide by zero, and no sum is less than one of its
//	    parts. No name reaches the output raw.
package latency
