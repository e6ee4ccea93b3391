package main

import (
	"encoding/json"
	"io"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/snapshot"
)

// writeTakeJSON writes the object that `take --json` prints, docs/take-json.md, and a
// newline. sequence is the number in a series, from 1; 0: not of a series.
func writeTakeJSON(w io.Writer, file string, sequence int, r *snapshot.Result) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(show.Object{
		{"sequence", show.Known(sequence)}, {"file", file}, {"engine", r.Engine}, {"isolation", r.Isolation},
		{"tasks", r.Tasks}, {"threads", r.Threads},
		{"stopped_ns", r.Stopped.Nanoseconds()}, {"window_ns", r.Window.Nanoseconds()},
		{"arrival_ns", r.Arrival.Nanoseconds()}, {"elapsed_ns", r.Elapsed.Nanoseconds()},
		{"tries", r.Tries}, {"bytes", r.Bytes},
		{"cpus", show.Object{
			{"online", len(r.CPUs.Online)}, {"stopped", len(r.CPUs.Stopped)}, {"working", len(r.CPUs.Working)},
			{"missing", append([]int{}, r.CPUs.Missing...)},
		}},
		{"stop_broken", r.StopBroken}, {"compared", r.Compared}, {"ran", r.Ran},
		{"left_out", show.List(r.LeftOut, account.LeftOutTakeJSON)}, {"warnings", account.Warnings(r.Warnings)},
	})
}
