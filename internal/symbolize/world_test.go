package symbolize

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// book is a Namer that knows what is written in it.
type book map[kcdata.UserPlace][]kcdata.UserFunction

func (b book) Names(_ *kcdata.Task, places []kcdata.UserPlace) [][]kcdata.UserFunction {
	out := make([][]kcdata.UserFunction, len(places))
	for i, p := range places {
		out[i] = b[p]
	}
	return out
}

// at is a place where a thread stood, ret one that it returns to.
func at(addr uint64) kcdata.UserPlace  { return kcdata.UserPlace{Addr: addr, Exact: true} }
func ret(addr uint64) kcdata.UserPlace { return kcdata.UserPlace{Addr: addr} }

// Addresses of all tests are below maxAddr.
const maxAddr = 40

// longName is longer than a reader reads.
var longName = strings.Repeat("é", 4000)

// randomBook knows some places, by names that a file can hold and others.
func randomBook(r *rand.Rand) book {
	b := book{}
	names := []string{"", "main", "std::vector<int>::push_back", "nul\x00in it", longName, "\x1b[2J"}
	for a := range uint64(2 * maxAddr) {
		p := kcdata.UserPlace{Addr: a / 2, Exact: a%2 == 0}
		for range r.IntN(3) {
			f := kcdata.UserFunction{Name: names[r.IntN(len(names))], Offset: r.Uint64N(99)}
			f.Module = []string{"", "/bin/a", "[jit]"}[r.IntN(3)]
			if r.IntN(3) == 0 {
				f.File, f.Line = "x.c", r.Uint32N(9)
			}
			b[p] = append(b[p], f)
		}
	}
	return b
}

// file writes a snapshot by calling each part with its writer.
func file(t testing.TB, parts ...func(kcdata.ItemWriter) error) []byte {
	t.Helper()
	w := kcdata.NewWriter(make([]byte, 1<<20))
	err := w.Begin(kcdata.MagicStackshot)
	for _, p := range parts {
		err = errors.Join(err, p(w))
	}
	if err = errors.Join(err, w.End()); err != nil {
		t.Fatal(err)
	}
	return w.Written()
}

// task is a process with a thread for each stack, and what before and after
// write around the threads.
func task(pid uint64, before, after func(kcdata.ItemWriter) error, stacks ...[]uint64) func(kcdata.ItemWriter) error {
	return func(w kcdata.ItemWriter) error {
		err := errors.Join(w.BeginContainer(kcdata.TypeTask, pid), w.Struct(kcdata.TypeTaskSnapshot, kcdata.TaskSnapshot{Pid: int32(pid)}), before(w))
		for i, s := range stacks {
			tid := pid*100 + uint64(i)
			err = errors.Join(err, w.BeginContainer(kcdata.TypeThread, tid), w.Struct(kcdata.TypeLinuxThread, kcdata.LinuxThread{Tid: uint32(tid)}),
				w.Uint64s(kcdata.TypeUserStackLR64, s), w.EndContainer(tid))
		}
		return errors.Join(err, after(w), w.EndContainer(pid))
	}
}

func nothing(kcdata.ItemWriter) error { return nil }

// randomItems writes any of what may stand in a task beside its threads.
func randomItems(r *rand.Rand) func(kcdata.ItemWriter) error {
	return func(w kcdata.ItemWriter) (err error) {
		for range r.IntN(5) {
			var e error
			switch r.IntN(7) {
			case 0:
				e = w.StructArray(kcdata.TypeLinuxMapping, []kcdata.LinuxMapping{{Start: 1, End: 30, Path: 1}})
			case 1:
				e = w.Define(kcdata.TypeLinuxMapStrings)
			case 2:
				e = w.Bytes(kcdata.TypeLinuxMapStrings, [][]byte{nil, []byte("\x00/bin/a\x00main\x00"), []byte("\x00/bin/b"), []byte("no NUL")}[r.IntN(4)])
			case 3:
				e = w.StructArray(kcdata.TypeLinuxUserSymbol, []kcdata.LinuxUserSymbol{{Addr: r.Uint64N(maxAddr), Name: 1, Flags: r.Uint32N(4)}, {Addr: r.Uint64N(maxAddr), Name: r.Uint32N(12), Module: 1, File: r.Uint32N(12), Flags: r.Uint32N(4)}})
			case 4:
				e = w.Define(kcdata.TypeLinuxUserSymbol)
			case 5:
				e = w.String(kcdata.TypeLinuxCgroupPath, fmt.Sprint("/", r.IntN(9)))
			case 6:
				e = errors.Join(w.BeginContainer(0x4242, 7), w.Bytes(kcdata.TypeLinuxMapStrings, []byte("\x00not the task's")), w.EndContainer(7))
			}
			err = errors.Join(err, e)
		}
		return err
	}
}

func randomFile(t testing.TB, r *rand.Rand) []byte {
	var parts []func(kcdata.ItemWriter) error
	if r.IntN(2) == 0 {
		parts = append(parts, func(w kcdata.ItemWriter) error { return w.Define(kcdata.TypeLinuxUserSymbol) })
	}
	for range r.IntN(5) {
		var stacks [][]uint64
		for range r.IntN(4) {
			stack := make([]uint64, r.IntN(6))
			for i := range stack {
				stack[i] = r.Uint64N(maxAddr)
			}
			stacks = append(stacks, stack)
		}
		parts = append(parts, task(1+r.Uint64N(5), randomItems(r), randomItems(r), stacks...)) // an id may come twice
	}
	return file(t, parts...)
}
