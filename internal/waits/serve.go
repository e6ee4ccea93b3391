package waits

import "stackshot/kcdata"

// fuse is for who waits for the server of a FUSE file system: by the file of the call, or by the
// list of requests that are not answered, which has who asks. That was read after the release:
// who has no file may ask for something else by then.
func (f *finder) fuse(w *Wait, file *kcdata.LinuxFile) {
	all, _ := moreFiles(w.Thread)
	l := look{file: file, evidence: File, confidence: Likely}
	asked, ok := f.ends.asked[tidOf(w.Thread)]
	switch {
	case file == nil && !ok:
		return
	case file == nil:
		dev := f.s.FUSE[asked].Dev
		l.file = &kcdata.LinuxFile{Kind: kcdata.FileOther, Fd: -1, Dev: dev, Magic: fuseMagic, Flags: f.stillAtAll(w.Thread)}
		f.server(w, &l)
		l.confidence = Likely
		l.note("its file system is known by the request that its server had not answered after the release")
	case f.still(&l):
		f.server(w, &l)
	}
	l.resource = Resource{Kind: FUSE, ID: l.file.Dev}
	f.one(w, &l)
	w.File.Of, w.File.Mount = max(all, 1), f.mountOf(w.Task, l.file.Dev)
}

func (f *finder) server(w *Wait, l *look) {
	f.takeSide(w, l, f.side(byDevice, serves, l.file.Dev), true)
}

// stillAtAll is what the files of t's call say of whether it had run since.
func (f *finder) stillAtAll(t *kcdata.Thread) uint32 {
	if len(t.Files) == 0 {
		return 0
	}
	return t.Files[0].Flags & (kcdata.FileStill | kcdata.FileMoved | kcdata.FileCatches)
}

// pager is for who touched a page that a userfaultfd has to serve. It has no descriptor: who has
// one that serves the memory of its process is its pager.
func (f *finder) pager(w *Wait) {
	if f.stillAtAll(w.Thread)&kcdata.FileMoved != 0 {
		return
	}
	s := f.side(byMemory, serves, w.Task.ID)
	l := look{file: &kcdata.LinuxFile{Kind: kcdata.FileUserfaultfd, Fd: -1, Object: s.object, Flags: f.stillAtAll(w.Thread)}}
	f.takeSide(w, &l, s, true)
	l.confidence = Likely
	if s.object != 0 {
		l.resource = Resource{Kind: Userfault, ID: s.object}
	}
	f.one(w, &l)
	w.File.Of = 1
}
