package verdict

import (
	"strings"

	"stackshot/internal/show"
	"stackshot/internal/waits"
)

// Short says what w's thread waits for in few words, without who can end that and without its
// number: "a mutex", "room in a pipe", "/mnt/backup (fuse.sshfs, store:/srv)".
func (x *Words) Short(w *waits.Wait) string {
	y := *w
	y.Resource.ID = 0
	return x.what(&y)
}

// what is what w's thread waits for, without who can end that.
func (x *Words) what(w *waits.Wait) string {
	if w.File == nil || w.File.File == nil || !tellsFile(w) {
		return thingOf(w, x.redacted)
	}
	if w.Kind.AtFileSystem() {
		return x.shortMount(w)
	}
	what := fileWords(w, x.redacted)
	return what.want + what.from + nobody(w)
}

// Topic is equal for waits that a count may put together: for the same kind of thing at the same
// place, peer or program, whichever one of several it is.
func (x *Words) Topic(w *waits.Wait) string {
	if len(w.Owners) == 0 {
		return x.Short(w)
	}
	o := &w.Owners[0]
	if o.Task == nil || o.Task == w.Task {
		return x.Short(w)
	}
	y := *w
	if w.File != nil && w.File.Socket != nil { // its ports are of one connection
		f, s := *w.File, *w.File.Socket
		s.LocalPort, s.PeerPort = 0, 0
		y.File, f.Socket = &f, &s
	}
	return x.Short(&y) + ", " + Related(o.Relation) + " " + short(o.Task.Name)
}

// ShortResource names what is waited for, without its number.
func (x *Words) ShortResource(r waits.Resource) string {
	return thing(r.Kind, waits.Resource{Kind: r.Kind}, x.redacted)
}

// shortMount names the file system or the disk that w waits for, by its kind if nothing else is
// known.
func (x *Words) shortMount(w *waits.Wait) string {
	if w.File.Mount == nil && (w.File.Device == "" || x.redacted) {
		return thing(w.Kind, w.Resource, x.redacted)
	}
	s := mounted(w, "", x.redacted)
	if w.File.Mount == nil {
		return "the disk " + words(w.File.Device)
	}
	return s
}

// relations say who an owner is to what Short names.
var relations = map[waits.Relation]string{
	waits.Holds: "held by", waits.Last: "last taken by", waits.Child: "child", waits.Joined: "thread", waits.Tracer: "tracer",
	waits.Execs: "vfork child", waits.Dumps: "taken by", waits.Reaps: "zombie of", waits.Runs: "which runs", waits.OtherEnd: "other end", waits.Listener: "listener", waits.Server: "served by", waits.Pager: "served by",
}

// Related are the words between what is waited for and its owner: "held by".
func Related(r waits.Relation) string {
	if s := relations[r]; s != "" {
		return s
	}
	return show.Clean(strings.ReplaceAll(string(r), "_", " "))
}
