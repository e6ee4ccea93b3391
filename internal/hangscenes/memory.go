//go:build linux && (amd64 || arm64)

package hangscenes

import (
	"os"
	"path/filepath"
	"testing"

	"stackshot/internal/userlab"
)

const (
	limitMiB = 16 // of the group's memory
	readMiB  = 64 // of the file that it reads
)

// memoryLimit: processes of a control group read a file that is bigger than the memory of the
// group. The file has holes only, so no disk is read: all of its time goes into reclaim.
func memoryLimit(tb testing.TB, hangs *userlab.Hangs) Standing {
	name := filepath.Join(tb.TempDir(), "archive")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		tb.Fatalf("hangscenes: %v", err)
	}
	if err := os.Truncate(name, readMiB<<20); err != nil {
		tb.Fatalf("hangscenes: %v", err)
	}
	g := newGroup(tb, "memory", "reports")
	g.set("memory.limit_in_bytes", "memory.max", limitMiB<<20)
	hangs.StartScene(tb, userlab.Scene{Name: "thrash", Life: Life,
		Words: []string{"report-writer", "3", g.procs(), name, "64"}})
	return Standing{Crowd: "report-writer", Says: []string{`reports-[0-9]`, `\b16(\.0)? MiB`, `(?i)limit|reclaim`}}
}

func noMemoryLimit() string {
	if root, _ := hierarchy("memory"); root == "" {
		return "no control groups with a limit of memory"
	}
	return ""
}
