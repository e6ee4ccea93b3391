package main

import (
	"encoding/json"
	"io"

	"stackshot/internal/account"
	"stackshot/snapshot"
)

// takeJSON is the object that `take --json` prints, docs/take-json.md.
type takeJSON struct {
	Sequence   int                   `json:"sequence,omitempty"` // in a series, from 1
	File       string                `json:"file"`
	Engine     string                `json:"engine"`
	Isolation  string                `json:"isolation"`
	Tasks      int                   `json:"tasks"`
	Threads    int                   `json:"threads"`
	StoppedNs  int64                 `json:"stopped_ns"`
	WindowNs   int64                 `json:"window_ns"`
	ArrivalNs  int64                 `json:"arrival_ns"`
	ElapsedNs  int64                 `json:"elapsed_ns"`
	Tries      int                   `json:"tries"`
	Bytes      int64                 `json:"bytes"`
	CPUs       takeCPUs              `json:"cpus"`
	StopBroken int                   `json:"stop_broken"`
	Compared   int                   `json:"compared"`
	Ran        int                   `json:"ran"`
	LeftOut    []account.LeftOutTask `json:"left_out"`
	Warnings   []account.Warning     `json:"warnings"`
}

type takeCPUs struct {
	Online  int   `json:"online"`
	Stopped int   `json:"stopped"`
	Working int   `json:"working"`
	Missing []int `json:"missing"`
}

// writeTakeJSON writes the object and a newline. sequence 0: not of a series.
func writeTakeJSON(w io.Writer, file string, sequence int, r *snapshot.Result) error {
	j := takeJSON{
		Sequence: sequence, File: file, Engine: r.Engine, Isolation: r.Isolation, Tasks: r.Tasks, Threads: r.Threads,
		StoppedNs: r.Stopped.Nanoseconds(), WindowNs: r.Window.Nanoseconds(),
		ArrivalNs: r.Arrival.Nanoseconds(), ElapsedNs: r.Elapsed.Nanoseconds(),
		Tries: r.Tries, Bytes: r.Bytes, StopBroken: r.StopBroken, Compared: r.Compared, Ran: r.Ran,
		CPUs: takeCPUs{
			Online: len(r.CPUs.Online), Stopped: len(r.CPUs.Stopped), Working: len(r.CPUs.Working),
			Missing: append([]int{}, r.CPUs.Missing...),
		},
		LeftOut: account.LeftOutTasks(r.LeftOut), Warnings: account.Warnings(r.Warnings),
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(j)
}
