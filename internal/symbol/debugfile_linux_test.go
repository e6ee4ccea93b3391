package symbol

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/foreign"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// split is a running stripped program and its debug file.
type split struct {
	task  *kcdata.Task
	prog  string // stripped
	full  string // before
	debug string // its debug file, where nobody finds it
	leaf  uint64
}

func newSplit(t *testing.T, args ...string) split {
	t.Helper()
	s := split{full: compiled(t, "gcc", "names.c", append([]string{"-O2", "-g"}, args...)...)}
	dir := t.TempDir()
	s.prog, s.debug = filepath.Join(dir, "p"), filepath.Join(dir, "elsewhere", "p.debug")
	os.Mkdir(filepath.Dir(s.debug), 0o755)
	command(t, "objcopy", "--only-keep-debug", s.full, s.debug)
	command(t, "objcopy", "-S", "--add-gnu-debuglink="+s.debug, s.full, s.prog)
	s.task = withBuildIDs(t, taskOf(t, running(t, s.prog).Pid))
	s.leaf = address(t, s.task, s.prog, s.full, "leaf")
	return s
}

// put copies the debug file to where it is looked for.
func (s *split) put(t *testing.T, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	copyFile(t, s.debug, to)
}

func (s *split) check(t *testing.T, o Options, name, why string) {
	t.Helper()
	o.Local = true
	wantResolved(t, resolver(t, o, foreign.Options{}), s.task, s.leaf, name, why)
}

func TestDebugFileByBuildID(t *testing.T) {
	testneed.Live(t)
	s := newSplit(t)
	root := t.TempDir()
	o := Options{DebugRoots: []string{root}}
	s.check(t, o, "", "")
	id := hex.EncodeToString(opened(t, s.prog).BuildID())
	path := filepath.Join(root, ".build-id", id[:2], id[2:]+".debug")
	s.put(t, path)
	s.check(t, o, "leaf", "")
	copyFile(t, "/bin/ls", path)
	s.check(t, o, "", foreign.ErrOther.Error())
}

func TestDebugFileByLink(t *testing.T) {
	testneed.Live(t)
	for _, ids := range []string{"-Wl,--build-id", "-Wl,--build-id=none"} {
		s := newSplit(t, ids)
		dir, root := filepath.Dir(s.prog), t.TempDir()
		o := Options{DebugRoots: []string{root}}
		for _, at := range []string{dir, filepath.Join(dir, ".debug"), filepath.Join(root, dir)} {
			path := filepath.Join(at, "p.debug")
			s.put(t, path)
			s.check(t, o, "leaf", "")
			os.Remove(path)
			s.check(t, o, "", "")
		}
	}
	// Without build-ids the checksum decides.
	s := newSplit(t, "-Wl,--build-id=none")
	path := filepath.Join(filepath.Dir(s.prog), "p.debug")
	s.put(t, path)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("x")
	f.Close()
	s.check(t, Options{}, "", "CRC-32")
}

// Lines come from the debug file too.
func TestLinesFromDebugFile(t *testing.T) {
	testneed.Live(t)
	s := newSplit(t)
	s.put(t, filepath.Join(filepath.Dir(s.prog), "p.debug"))
	r := resolver(t, Options{Local: true, Lines: true}, foreign.Options{})
	got := one(t, r, s.task, s.leaf)
	if got.Name != "leaf" || !strings.HasSuffix(got.File, "names.c") || got.Line != 8 {
		t.Errorf("%+v", got)
	}
}

// server answers for one build and counts.
func server(t *testing.T, id, file string) (*httptest.Server, *[]string) {
	t.Helper()
	asked := &[]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.Path)
		switch r.URL.Path {
		case "/buildid/" + id + "/debuginfo":
			http.ServeFile(w, r, file)
		case "/buildid/ff/debuginfo":
			http.Error(w, "no", http.StatusInternalServerError)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv, asked
}

// What a server has is fetched once, and of a program that is gone as well.
func TestDebuginfod(t *testing.T) {
	testneed.Live(t)
	s := newSplit(t)
	id := hex.EncodeToString(opened(t, s.prog).BuildID())
	srv, asked := server(t, id, s.debug)
	dir := filepath.Join(t.TempDir(), "cache")
	client := func() *Debuginfod {
		d, err := NewDebuginfod([]string{srv.URL + "/"}, dir, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	s.check(t, Options{Server: client()}, "leaf", "")
	if !slices.Contains(*asked, "/buildid/"+id+"/debuginfo") {
		t.Fatalf("asked %q", *asked)
	}
	n := len(*asked)
	s.check(t, Options{Server: client()}, "leaf", "")
	if len(*asked) != n {
		t.Errorf("asked again: %q", (*asked)[n:])
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*", ".*"))
	if len(left) > 0 {
		t.Errorf("left behind %q", left)
	}
	gone := *s.task
	gone.Linux.StartBoottime = 0
	os.Remove(s.prog)
	away := resolver(t, Options{Server: client()}, foreign.Options{})
	wantResolved(t, away, &gone, s.leaf, "leaf", "")
}

func TestDebuginfodFailures(t *testing.T) {
	srv, asked := server(t, "00", "/dev/null")
	d, err := NewDebuginfod([]string{srv.URL}, t.TempDir(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range [][]byte{{0xff}, {0xff}, {0xee}, {0xee}} {
		if path, err := d.Fetch(t.Context(), id); err == nil {
			t.Errorf("%x is in %s", id, path)
		}
	}
	if len(*asked) != 2 {
		t.Errorf("asked %q: twice for what is not there", *asked)
	}
	for _, bad := range []string{"ftp://x", "file:///etc", "nothing", "http://"} {
		if _, err := NewDebuginfod([]string{bad}, "", 0); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	t.Setenv("DEBUGINFOD_URLS", "")
	if d, err := DebuginfodFromEnv(); d != nil || err != nil {
		t.Errorf("without a server: %v, %v", d, err)
	}
}

// A server that says nothing costs its limit and no more.
func TestDebuginfodThatHangs(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	hold := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer srv.Close()
	defer close(hold)
	s := newSplit(t)
	d, err := NewDebuginfod([]string{srv.URL}, t.TempDir(), 200*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	s.check(t, Options{Server: d}, "", "deadline exceeded")
}
