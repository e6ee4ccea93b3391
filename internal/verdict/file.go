package verdict

import (
	"bytes"
	"fmt"
	"strings"

	"stackshot/internal/account"
	"stackshot/internal/show"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// maxPath bounds a path, an address or a type of file system in a sentence, in cells.
const maxPath = 96

// field is a text of fixed length in a record, up to its first 0, clean and cut.
func field(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return words(string(before))
}

// words is a text of the machine, clean and cut.
func words(s string) string { return show.Fit(show.Clean(s[:min(len(s), 8*maxPath)]), maxPath) }

// process names a process, and its number inside its container.
func process(o *waits.Owner) string {
	s := account.Task(&kcdata.Task{ID: o.Task.ID, Name: short(o.Task.Name)})
	if o.Thread != nil && len(o.Thread.NS) > 0 {
		s += fmt.Sprintf(" (%d in its container)", o.Thread.NS[len(o.Thread.NS)-1].Tid)
	}
	return s
}

// whole names an owner that is a process.
func (n names) whole(o *waits.Owner, by *kcdata.Task) string {
	switch {
	case o.Task == by:
		return "its own process"
	case n[o.Thread] && o.Thread != nil:
		return fmt.Sprintf("task %d", o.Task.ID)
	}
	if n != nil && o.Thread != nil {
		n[o.Thread] = true
	}
	return process(o)
}

// atFile says what w's thread waits for at an open file, and who can end that: "waits for
// bytes from the pipe 0xffff88 that db [7] writes".
func (n names) atFile(w *waits.Wait, owners []waits.Owner, redacted bool) string {
	f := w.File.File
	s := "waits for "
	if n := w.File.Of; n > 1 && w.File.Says == waits.Serves {
		return s + fmt.Sprintf("an event of one of %d descriptors", n)
	} else if n > 1 && (f.Flags&kcdata.FilePolled != 0 || w.Kind == waits.Poll) {
		s += fmt.Sprintf("one of %d descriptors, among them ", n)
	}
	if w.AnyOwner && w.File.Of > 1 && w.Resource == (waits.Resource{}) { // each has another one of the files
		return "waits for an event of one of " + show.Count(w.File.Of, "descriptor") + " from " + n.list(w, owners)
	}
	what := fileWords(w, redacted)
	if len(owners) == 0 {
		return s + what.want + what.from + nobody(w)
	}
	who, one := n.list(w, owners), len(owners) == 1
	switch r := owners[0].Relation; {
	case r == waits.Holds:
		return s + what.want + what.from + " that " + who + held(one, owners[0].Dead, who)
	case r == waits.Listener:
		return s + who + " to accept its connection (" + strings.TrimSpace(what.at) + ")"
	case r == waits.Server:
		return s + mounted(w, "served by "+who, redacted)
	case r == waits.Pager:
		return s + "a page that " + who + plural(one, " has", " have") + " to serve (" + strings.TrimSpace(what.at) + ")"
	case w.File.Says == waits.OwnEnd:
		return s + what.want + what.from + ", whose other end only it itself has open"
	case f.Kind == kcdata.FileSocket && what.writes:
		return s + who + " to read what it sends to" + what.at
	case f.Kind == kcdata.FileSocket && owners[0].Owes:
		return s + "the answer of " + who + " over" + what.at
	case f.Kind == kcdata.FileSocket:
		return s + "data from " + who + " over" + what.at
	case what.writes:
		return s + what.want + what.from + " that " + who + plural(one, " reads", " read")
	case f.Kind == kcdata.FilePipe || f.Kind == kcdata.FileFIFO:
		return s + what.want + what.from + " that " + who + plural(one, " writes", " write")
	}
	return s + what.want + what.from + ", of which " + who + plural(one, " has", " have") + " the other end"
}

// tellsFile reports whether the words for w come from its file: not if it waits there for something
// else, a lock in the kernel for example.
func tellsFile(w *waits.Wait) bool {
	switch w.Kind {
	case waits.Pipe, waits.Socket, waits.Terminal, waits.Descriptor, waits.Poll, waits.FileLock, waits.Userfault, waits.Netlink:
		return true
	}
	return w.Kind.AtFileSystem() && (w.File.Mount != nil || w.File.Device != "" || len(w.Owners) > 0)
}

// nobody says why w has no known owner: who else may end it.
func nobody(w *waits.Wait) string {
	f := w.File.File
	writes := f.Flags&(kcdata.FileToWrite|kcdata.FileToRead) == kcdata.FileToWrite
	switch w.File.Says {
	case waits.NoEnd:
		switch {
		case f.Kind == kcdata.FileSocket:
			return ", whose other side is gone"
		case writes:
			return ", which has no readers"
		}
		return ", which has no writers"
	case waits.OwnEnd:
		return ", whose other end only it itself has open"
	case waits.NotOpened:
		if f.Op == kcdata.FileOpOpen {
			return ""
		}
		return ", which nobody has opened on the other side"
	case waits.Elsewhere:
		if w.File.Remote != "" {
			return ""
		}
		return ", whose other end is outside this file"
	case waits.NotFound:
		return ", whose other end no process seen here has"
	case waits.NotLooked:
		if len(w.Notes) > 0 { // they say more
			return ""
		}
		return ", whose other end was not looked for"
	}
	return ""
}

// mounted names the file system that w waits for, with who serves it.
func mounted(w *waits.Wait, served string, redacted bool) string {
	var parts show.Parts
	name, source := "its file system", ""
	if m := w.File.Mount; m != nil && !redacted {
		if p := field(m.Point[:]); p != "" {
			name = p
		}
		kind := field(m.FSType[:])
		source = field(m.Source[:])
		parts.If(kind != "", "%s", kind)
		parts.If(source != "" && source != name, "%s", source)
	} else if m != nil {
		parts.If(field(m.FSType[:]) != "", "%s", field(m.FSType[:]))
	}
	parts.If(w.File.Device != "" && !redacted && source != "/dev/"+w.File.Device, "on %s", words(w.File.Device))
	parts.If(w.Kind == waits.FSFreeze, "frozen")
	parts.If(served != "", "%s", served)
	if s := parts.Join(", "); s != "" {
		return name + " (" + s + ")"
	}
	return name
}
