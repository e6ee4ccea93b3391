//go:build linux

package userlab

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// An Edge says that one role of a hang waits for a lock of C's variable, and that
// another has it.
type Edge struct{ Waiter, Lock, Owner string }

// Edges are those of a case whose locks keep their owner where gdb reads it: glibc's
// mutexes, and its rwlock that a writer holds.
func Edges(name string) []Edge {
	mutex := func(waiter, lock, owner string) Edge { return Edge{waiter, lock + ".__data.__owner", owner} }
	switch name {
	case "abba", "abba-recursive", "abba-errorcheck", "abba-robust":
		return []Edge{mutex("a", "lock[1]", "b"), mutex("b", "lock[0]", "a"), mutex("behind", "lock[0]", "a")}
	case "cycle":
		return []Edge{mutex("p1", "lock[0]", "p2"), mutex("p2", "common->lock[1]", "q"), mutex("q", "common->lock[0]", "p1")}
	case "pi-chain":
		return []Edge{mutex("t1", "lock[2]", "t2"), mutex("t2", "lock[3]", "t3"), mutex("t3", "lock[4]", "t4")}
	case "holder", "traced":
		return []Edge{mutex("waiter", "common->lock[0]", "holder")}
	case "zombie-owner":
		return []Edge{mutex("waiter", "lock[0]", "owner")}
	case "crowd":
		return []Edge{mutex("w0", "lock[0]", "holder"), mutex("w11", "lock[0]", "holder")}
	case "rw-writer":
		return []Edge{{"writer", "rw.__data.__cur_writer", "holder"}}
	}
	return nil
}

var gdbValue = regexp.MustCompile(`(?m)^\$\d+ = (\d+)$`)

// Values asks gdb for integer expressions in the process of a role: numbers in that
// process's own pid namespace, if they are those of threads.
func (h *Hang) Values(role string, expressions ...string) ([]int, error) {
	h.tb.Helper()
	testneed.Program(h.tb, "gdb")
	ctx, cancel := context.WithTimeout(context.Background(), gdbTime)
	defer cancel()
	pid := h.Parts[role].Pid
	args := []string{"-nx", "-q", "-batch", "-iex", "set auto-load off", "-iex", "set debuginfod enabled off",
		"-iex", "set print thread-events off", "-p", strconv.Itoa(pid), fmt.Sprintf("/proc/%d/exe", pid)}
	for _, e := range expressions {
		args = append(args, "-ex", "print "+e)
	}
	said, err := exec.CommandContext(ctx, "gdb", args...).CombinedOutput()
	found := gdbValue.FindAllSubmatch(said, -1)
	if err != nil || len(found) != len(expressions) {
		return nil, fmt.Errorf("%w: %q: %v\n%s", ErrWitness, expressions, err, said)
	}
	values := make([]int, len(found))
	for i, m := range found {
		if values[i], err = strconv.Atoi(string(m[1])); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// OwnerWord is what Values tells of a mutex of glibc, without gdb: the word 8 bytes behind
// the one that a role waits for, by its registers and /proc/PID/mem.
func (h *Hang) OwnerWord(role string) (int, error) {
	tid := h.Parts[role].Tid
	var addr int64
	err := testtask.WaitFor(endTime, func() (bool, error) { // gdb may have woken it: it goes back
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", tid))
		var nr int
		_, bad := fmt.Sscanf(string(b), "%d 0x%x", &nr, &addr)
		return bad == nil && nr == unix.SYS_FUTEX, err
	})
	if err != nil {
		return 0, fmt.Errorf("%s is not in a futex call: %w", role, err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", tid))
	if err != nil {
		return 0, err
	}
	defer mem.Close()
	var word [4]byte
	if _, err := mem.ReadAt(word[:], addr+8); err != nil {
		return 0, err
	}
	return int(binary.LittleEndian.Uint32(word[:])), nil
}
