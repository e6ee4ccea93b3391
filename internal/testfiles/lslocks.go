//go:build linux

package testfiles

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// Lock is one row of lslocks.
type Lock struct {
	Pid     int
	Type    string // FLOCK, POSIX, OFDLCK, LEASE, ...
	Inode   uint64
	Dev     uint64 // major<<32 | minor
	Write   bool
	Waits   bool // somebody who waits for it
	Start   uint64
	End     uint64 // the last byte; 0 with Start 0: all of the file
	Blocker int    // Waits: whose lock it is for; 0: not known
}

// Locks asks lslocks for the locks of the machine.
func Locks(tb testing.TB) []Lock {
	tb.Helper()
	testneed.Program(tb, "lslocks")
	out, err := exec.Command("lslocks", "-J", "-o", "PID,TYPE,INODE,MAJ:MIN,MODE,START,END,BLOCKER").Output()
	if err != nil {
		tb.Fatalf("lslocks: %v", err)
	}
	rows, err := parseLslocks(out)
	if err != nil {
		tb.Fatalf("lslocks: %v", err)
	}
	return rows
}

func parseLslocks(out []byte) ([]Lock, error) {
	var answer struct {
		Locks []struct {
			Pid, Blocker      int
			Type, Mode        string
			Inode, Start, End uint64
			Dev               string `json:"maj:min"`
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, err
	}
	var rows []Lock
	for _, r := range answer.Locks {
		dev, err := device(r.Dev)
		if err != nil {
			return nil, err
		}
		mode, waits := strings.CutSuffix(r.Mode, "*")
		rows = append(rows, Lock{r.Pid, r.Type, r.Inode, dev, mode == "WRITE", waits, r.Start, r.End, r.Blocker})
	}
	return rows, nil
}
