package main

import (
	"os"
	"strings"
	"testing"

	"stackshot/internal/account"
	"stackshot/internal/golden"
)

// takeJSON is the object that `take --json` prints, as a reader of docs/take-json.md has it.
type takeJSON struct {
	Sequence  int    `json:"sequence"` // in a series, from 1
	File      string `json:"file"`
	Engine    string `json:"engine"`
	Isolation string `json:"isolation"`
	Tasks     int    `json:"tasks"`
	Threads   int    `json:"threads"`
	StoppedNs int64  `json:"stopped_ns"`
	WindowNs  int64  `json:"window_ns"`
	ArrivalNs int64  `json:"arrival_ns"`
	ElapsedNs int64  `json:"elapsed_ns"`
	Tries     int    `json:"tries"`
	Bytes     int64  `json:"bytes"`
	CPUs      struct {
		Online  int   `json:"online"`
		Stopped int   `json:"stopped"`
		Working int   `json:"working"`
		Missing []int `json:"missing"`
	} `json:"cpus"`
	StopBroken int `json:"stop_broken"`
	Compared   int `json:"compared"`
	Ran        int `json:"ran"`
	LeftOut    []struct {
		Tgid    uint32 `json:"tgid"`
		Reason  string `json:"reason"`
		Threads uint32 `json:"threads"`
		Errno   uint32 `json:"errno"`
	} `json:"left_out"`
	Warnings []account.Warning `json:"warnings"`
}

// docs/take-json.md has every key that `take --json` can write.
func TestTakeJSONIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/take-json.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := golden.ObjectKeys(t, "deliver.go")
	for _, key := range keys {
		if !strings.Contains(string(doc), "`"+key+"`") {
			t.Errorf("docs/take-json.md does not mention `%s`", key)
		}
	}
	if len(keys) < 20 {
		t.Errorf("only %d keys found", len(keys))
	}
}
