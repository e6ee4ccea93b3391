package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// longNames is a small file that makes much of itself: a name and a source file of
// 4 KiB each are those of 16,000 frames, which differ in their lines.
func longNames() *kcdata.Snapshot {
	const threads, frames = 60, uint64(300)
	strs := []byte("\x00" + strings.Repeat("n", 4000) + "\x00" + strings.Repeat("f", 4000) + "\x00")
	task := &kcdata.Task{ID: 7, Name: "app"}
	var records []kcdata.LinuxUserSymbol
	for i := range uint64(threads) {
		th := &kcdata.Thread{ID: i + 7}
		for n := range frames - i {
			addr := i<<16 + n
			th.User = append(th.User, addr)
			records = append(records, kcdata.LinuxUserSymbol{Addr: addr, Name: 1, File: 4002, Line: uint32(addr)})
		}
		task.Threads = append(task.Threads, th)
	}
	task.UserSymbols = kcdata.NewUserSymbolTable(records, strs)
	return &kcdata.Snapshot{Tasks: []*kcdata.Task{task}}
}

func TestLongNamesOfManyFrames(t *testing.T) {
	testneed.Slow(t)
	s := longNames()
	for _, f := range []struct { // the heap keeps what one of them takes: that of the least goes first
		name  string
		write func(io.Writer, *kcdata.Snapshot, Options) error
	}{{"folded", Folded}, {"pprof", Pprof}, {"text", Text}, {"json", JSON}} {
		testheap.Bound(t, 48<<20, f.name, func() {
			if err := f.write(io.Discard, s, Options{}); err != nil {
				t.Errorf("%s: %v", f.name, err)
			}
		})
	}
}

// A task of too many mappings is cut behind its threads.
func TestJSONLeavesMappingsOut(t *testing.T) {
	const most, n = 1 << 20, 4000
	m := kcdata.Mapping{Path: strings.Repeat("\x01", 4000)}
	s := &kcdata.Snapshot{Tasks: []*kcdata.Task{
		{ID: 1, Mappings: slices.Repeat([]kcdata.Mapping{m}, n), Threads: []*kcdata.Thread{{ID: 1}}},
		{ID: 2, Mappings: slices.Repeat([]kcdata.Mapping{m}, n), Threads: []*kcdata.Thread{{ID: 2}}},
	}}
	var b bytes.Buffer
	err := JSON(&b, s, Options{MaxBytes: most})
	var long *CutError
	if !errors.As(err, &long) || long.Threads != 1 || !strings.Contains(err.Error(), "1 thread and ") {
		t.Fatalf("%v", err)
	}
	var doc struct {
		Tasks          []struct{ Threads, Mappings []struct{} }
		Left           int `json:"mappings_left_out"`
		ThreadsLeftOut int `json:"threads_left_out"`
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Tasks) != 1 || len(doc.Tasks[0].Threads) != 1 || doc.ThreadsLeftOut != 1 {
		t.Fatalf("%d tasks, %d threads left out", len(doc.Tasks), doc.ThreadsLeftOut)
	}
	if got := len(doc.Tasks[0].Mappings); got == 0 || got+doc.Left != 2*n || doc.Left != long.Mappings {
		t.Errorf("%d mappings, and %d left out, %d by the error", got, doc.Left, long.Mappings)
	}
}

// A report that would be too long leaves threads out, counts them, and is well
// formed: what is there and what is left out are all.
func TestReportsLeaveThreadsOut(t *testing.T) {
	s := longNames()
	const most = 1 << 20
	cut := func(write func(io.Writer, *kcdata.Snapshot, Options) error) (string, int) {
		var b bytes.Buffer
		err := write(&b, s, Options{MaxBytes: most})
		var long *CutError
		if !errors.As(err, &long) || long.Bytes != most || long.Threads == 0 {
			t.Fatalf("%v", err)
		}
		if b.Len() < most || b.Len() > 8*most {
			t.Errorf("%d bytes, where %d are the limit", b.Len(), most)
		}
		return b.String(), long.Threads
	}
	threads := s.ThreadCount()

	out, left := cut(JSON)
	var doc struct {
		Tasks []struct{ Threads []struct{ Tid int } }
		Left  int `json:"threads_left_out"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if got := len(doc.Tasks[0].Threads); doc.Left != left || got+left != threads || got == 0 {
		t.Errorf("JSON: %d threads and %d left out, %d by the error, of %d", got, doc.Left, left, threads)
	}

	out, left = cut(Folded)
	sum := 0
	for line := range strings.Lines(out) {
		n := 0
		fmt.Sscan(line[strings.LastIndex(line, " "):], &n)
		sum += n
	}
	if last := fmt.Sprintf("%s %d\n", leftOutStack, left); sum != threads || !strings.HasSuffix(out, last) {
		t.Errorf("folded: %d of %d threads, ends with %.100q", sum, threads, out[len(out)-100:])
	}

	out, left = cut(Text)
	if !strings.Contains(out, fmt.Sprintf("!! %d threads left out: the report would be longer than", left)) {
		t.Error("the text report does not say what it leaves out")
	}
}

// The names of one stack are bounded in JSON, and its frames: it is made in memory.
func TestOneLongStack(t *testing.T) {
	const frames = 4096
	strs := []byte("\x00" + strings.Repeat("n", 4000) + "\x00")
	th := &kcdata.Thread{ID: 7}
	var records []kcdata.LinuxUserSymbol
	for n := range uint64(frames) {
		th.User = append(th.User, n)
		for range 8 {
			records = append(records, kcdata.LinuxUserSymbol{Addr: n, Name: 1})
		}
	}
	task := &kcdata.Task{ID: 7, Threads: []*kcdata.Thread{th}, UserSymbols: kcdata.NewUserSymbolTable(records, strs)}
	b := jsonOf(t, &kcdata.Snapshot{Tasks: []*kcdata.Task{task}}, Options{})
	var doc struct {
		Tasks []struct {
			Threads []struct {
				Unnamed int                       `json:"frames_unnamed"`
				Notes   []string                  `json:"user_notes"`
				User    []struct{ Symbol string } `json:"user_stack"`
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	got := doc.Tasks[0].Threads[0]
	named := 0
	for _, f := range got.User {
		if f.Symbol != "" {
			named++
		}
	}
	if len(got.User) != maxUserFrames || named != maxThreadNames/4000 || named+got.Unnamed != maxUserFrames {
		t.Errorf("%d frames, %d named, %d said to be not", len(got.User), named, got.Unnamed)
	}
	if notes := strings.Join(got.Notes, "; "); !strings.Contains(notes, fmt.Sprintf("only the innermost %d functions", maxUserFrames)) {
		t.Errorf("notes %q", notes)
	}
}
