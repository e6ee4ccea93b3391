package hanglab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"stackshot/internal/waitgraph"
	"stackshot/internal/waits"
)

// Verdict is what the laboratory reads of the JSON of `stackshot hang`; docs/hang-json.md
// describes all of it.
type Verdict struct {
	Format     string
	Version    int
	OneInstant bool `json:"one_instant"`
	Capture    struct{ Engine string }
	Deadlocks  []Deadlock
	Waits      []FoundWait
	Culprits   []FoundCulprit
}

// Thread is one that the verdict names.
type Thread struct {
	Tid, Pid int
	Name     string
}

// Deadlock is one that was found.
type Deadlock struct {
	Confidence waits.Confidence
	Cycle      int // the first of Threads: each waits for something that the next has
	Threads    []Thread
	Behind     Threads
}

// FoundWait is what a thread waits for.
type FoundWait struct {
	Thread
	Kind       waits.Kind
	Owners     []Thread
	Evidence   waits.Evidence
	Confidence waits.Confidence
	When       waits.When
	File       *FoundFile
}

// FoundFile is the open file at which a thread waits.
type FoundFile struct {
	Says   waits.FileSays
	Remote string
	Mount  *FoundMount
}

// FoundMount is the mount of a file system that a thread waits for.
type FoundMount struct{ Point string }

// FoundCulprit is one that was accused.
type FoundCulprit struct {
	Thread
	Reason  waitgraph.Reason
	Victims Threads
}

// Threads are a list of threads, of their tids, or how many they are.
type Threads struct {
	Count int
	Tids  []int // nil with a Count alone
}

func (ts *Threads) UnmarshalJSON(b []byte) error {
	var count int
	var tids []int
	var list []Thread
	switch {
	case json.Unmarshal(b, &count) == nil:
		*ts = Threads{Count: count}
	case json.Unmarshal(b, &list) == nil:
		*ts = Threads{Count: len(list), Tids: tidsOf(list)}
	case json.Unmarshal(b, &tids) == nil:
		*ts = Threads{Count: len(tids), Tids: tids}
	default:
		return fmt.Errorf("neither a list of threads nor a number: %s", b)
	}
	return nil
}

func tidsOf(ts []Thread) (tids []int) {
	for _, t := range ts {
		tids = append(tids, t.Tid)
	}
	return tids
}

// Parse reads one verdict, and nothing behind it.
func Parse(b []byte) (*Verdict, error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	var v Verdict
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if v.Format != "stackshot-hang" || v.Version != 1 {
		return nil, fmt.Errorf("format %q, version %d", v.Format, v.Version)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one object")
	}
	return &v, nil
}
