package catalog

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"time"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// Entry is a file of a list, read to its end.
type Entry struct {
	File
	Tasks, Threads int
	StoppedNs      *uint64 // nil: not known, or nothing was stopped
	notStopped     bool    // nothing was stopped
	Verdict        string  // in one line; "": not asked for
	Follows        string  // what follows the file's end; "": nothing
}

// Fill takes what a list says from the file's snapshot, which may break off.
func (e *Entry) Fill(s *kcdata.Snapshot) {
	e.Tasks, e.Threads = len(s.Tasks), s.ThreadCount()
	e.Host, e.Taken = s.Hostname, s.Machine.RealtimeNs
	if s.HasCapture {
		p := account.PauseOf(s, nil)
		if e.notStopped = !p.Stopped; p.Stopped {
			e.StoppedNs = &p.StoppedNs
		}
	}
}

// maxHost bounds a host's column, in cells.
const maxHost = 20

// Text writes a list, entry by entry as they come. The name of a file is never cut.
func Text(out io.Writer, d *Directory, entries iter.Seq[*Entry], width int) error {
	w := bufio.NewWriter(out)
	p := &show.Page{Width: width, Put: func(line string) { fmt.Fprintln(w, line) }}
	broken, host := 0, 1
	for _, f := range d.Files {
		host = max(host, min(show.Cells(show.Clean(f.Host)), maxHost))
	}
	for e := range entries {
		p.Line("%s", e.line(host))
		p.Put("    " + show.Clean(e.Path))
		if e.Err != nil {
			broken++
			reason := "cannot be read: "
			if e.Threads > 0 {
				reason = "not whole: "
			}
			p.Words("    ", "%s%s", reason, show.Clean(e.Err.Error()))
		}
		if e.Verdict != "" {
			p.Line("    %s", e.Verdict)
		}
		if e.Follows != "" {
			p.Words("    ", "%s", e.Follows)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	p.Words("", "%s", d.sum(broken))
	return w.Flush()
}

// line is time, host, threads and pause, in columns.
func (e *Entry) line(host int) string {
	taken, name, pause := "time not known", "-", ""
	if e.Err != nil && e.Taken == 0 && e.Threads == 0 {
		return taken
	}
	if e.Taken != 0 {
		taken = time.Unix(0, int64(min(e.Taken, 1<<62))).UTC().Format("2006-01-02 15:04:05 UTC")
	}
	if e.Host != "" {
		name = show.Fit(show.Clean(e.Host), maxHost)
	}
	if e.StoppedNs != nil {
		pause = "stopped " + show.Duration(*e.StoppedNs)
	} else if e.notStopped {
		pause = "nothing stopped"
	}
	pad := max(host-show.Cells(name), 0)
	return fmt.Sprintf("%-23s  %s%*s  %14s  %s", taken, name, pad, "", show.Count(e.Threads, "thread"), pause)
}

// sum is the last line of a list.
func (d *Directory) sum(broken int) string {
	where := show.Clean(Absolute(d.Path))
	if len(d.Files) == 0 {
		return "no snapshot in " + where + d.closed()
	}
	s := show.Count(len(d.Files), "snapshot") + " in " + where
	if broken > 0 {
		s += fmt.Sprintf("; cannot be read, or not to the end: %d", broken)
	}
	return s + d.closed()
}

// closed says how many files nothing is known of.
func (d *Directory) closed() string {
	if d.Closed == 0 {
		return ""
	}
	return "; " + show.Count(d.Closed, "other file") + " could not be opened"
}

// JSON writes a list as one object (docs/list-json.md), entry by entry as they come.
func JSON(out io.Writer, d *Directory, entries iter.Seq[*Entry]) error {
	s := show.NewStream(out)
	s.Document(func() show.Object {
		return show.Object{
			{"format", "stackshot-list"}, {"version", 1},
			{"directory", show.Clean(Absolute(d.Path))}, {"not_opened", d.Closed},
			{"files", show.Items(func(yield func(show.Object) bool) {
				for e := range entries {
					if !yield(e.object()) || s.W.Flush() != nil {
						return
					}
				}
			})},
		}
	})
	return s.W.Flush()
}

func (e *Entry) object() show.Object {
	var reason string
	if e.Err != nil {
		reason = show.Clean(e.Err.Error())
	}
	return show.Object{
		{"file", show.Clean(filepath.Base(e.Path))}, {"path", show.Clean(e.Path)},
		{"host", show.Known(show.Clean(e.Host))}, {"realtime_ns", show.Known(e.Taken)},
		{"tasks", e.Tasks}, {"threads", e.Threads}, {"stopped_ns", e.StoppedNs},
		{"verdict", show.Known(e.Verdict)}, {"follows", show.Known(e.Follows)}, {"error", show.Known(reason)},
	}
}
