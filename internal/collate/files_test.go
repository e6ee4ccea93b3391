package collate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/capture"
	"stackshot/internal/procfs"
	"stackshot/internal/testread"
	"stackshot/kcdata"
)

// withFiles are a thread's items of open files.
func withFiles(files []kcdata.LinuxFile, sockets ...kcdata.LinuxSocket) func(*kcdata.Writer) error {
	return func(w *kcdata.Writer) error {
		err := w.StructArray(kcdata.TypeLinuxFile, files)
		if len(sockets) > 0 {
			err = errors.Join(err, w.StructArray(kcdata.TypeLinuxSocket, sockets))
		}
		return err
	}
}

const (
	anObject = 0xffff888011110000 + 0x1000*iota
	itsPeer
	itsFile
	otherFile
	aConn
	otherObject
	aMemory
	aNode
)

var (
	anAddress  = [16]byte{192, 0, 2, 17}
	hisAddress = [16]byte{0x20, 0x01, 0x0d, 0xb8, 0xaa, 0xbb, 0xcc, 0xdd, 15: 9}
)

const aPort, hisPort = 54321, 61234

// endsWorld is a capture of three processes: 10 waits at a socket and still does, 20 and 21 waited at a
// pipe and have gone on, 30 has ended; 40 waits in memory that a userfaultfd serves.
func endsWorld(t *testing.T, redact bool) *capture.Raw {
	socket := kcdata.LinuxFile{Kind: kcdata.FileSocket, Fd: 4, Object: anObject, Peer: itsPeer, File: itsFile, Inode: 12345, Flags: kcdata.FileMoved | kcdata.FileToRead}
	pipe := kcdata.LinuxFile{Kind: kcdata.FilePipe, Object: otherObject, File: otherFile, Inode: 777, Flags: kcdata.FileOpaque}
	gone := kcdata.LinuxFile{Kind: kcdata.FilePipe, Flags: kcdata.FileClosed}
	address := kcdata.LinuxSocket{Fd: 4, Family: 2, Local: anAddress, Remote: hisAddress, LocalPort: aPort, PeerPort: hisPort, BytesIn: 5}
	c := madeUp(t, redact,
		[]waiter{{tid: 10, wait: &kcdata.LinuxWait{Files: 20}, raw: withFiles([]kcdata.LinuxFile{socket, pipe}, address)}},
		[]waiter{{tid: 20, raw: withFiles([]kcdata.LinuxFile{{Kind: kcdata.FilePipe, Object: 0xffff999}})}, {tid: 21, raw: withFiles([]kcdata.LinuxFile{{Kind: kcdata.FilePipe, Object: 0xffff999}})}},
		[]waiter{{tid: 30, raw: withFiles([]kcdata.LinuxFile{gone})}}, []waiter{{tid: 40}})
	c.FileSources = kcdata.FilesHasTable | kcdata.FilesHasUnix
	id := func(tid uint32) capture.WaiterID { return capture.WaiterID{Tid: tid, Start: uint64(tid) * startOf} }
	c.Ends = &capture.Ends{
		Taken: kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasPass, Looked: 99, Ends: 6, Wanted: 3, DelayNs: 7},
		Ends: []kcdata.LinuxEnd{
			{Tgid: 20, Kind: kcdata.FileSocket, Object: itsPeer, Peer: anObject, Of: anObject, File: otherFile, Inode: 12346, Local: hisAddress, Remote: anAddress, Port: hisPort, PeerPort: aPort},
			{Tgid: 21, Kind: kcdata.FilePipe, Object: 0xffff999, Of: 0xffff999},                                    // its threads have gone on
			{Tgid: 22, Kind: kcdata.FileFUSE, Object: aConn, Of: aConn, Flags: kcdata.EndServes, Dev: 50},          // stays
			{Tgid: 23, Kind: kcdata.FileUserfaultfd, Object: 0xffff111, Of: 0xffff111, Peer: aMemory, Backlog: 40}, // serves 40
			{Tgid: 24, Kind: kcdata.FileUserfaultfd, Object: 0xffff222, Of: 0xffff222, Peer: aMemory, Backlog: 20}, // 20 has gone on
			{Tgid: 25, Kind: kcdata.FileUserfaultfd, Object: 0xffff333, Of: 0xffff333, Peer: aMemory, Backlog: 99}, // of nobody here
		},
		Locks:   []kcdata.LinuxFileLock{{Number: 1, Kind: kcdata.FileLockFlock, Tgid: 20, Dev: 254 << 32, Inode: 99}},
		Mounts:  []kcdata.LinuxMount{{Dev: 50, FSType: [32]byte{'f', 'u', 's', 'e'}}},
		Devices: []kcdata.LinuxDevice{{Dev: 254 << 32}},
		FUSE:    []kcdata.LinuxFUSE{{Dev: 50, Conn: aConn, Node: aNode, Tid: 10}, {Dev: 50, Conn: aConn, Tid: 20}, {Dev: 50, Flags: kcdata.FUSESums, Waiting: 2}},
		Waiters: map[capture.WaiterID]capture.Waiter{id(10): {Still: true, Catches: true}, id(20): {}, id(21): {}, id(40): {Still: true}},
	}
	m := &c.Ends.Mounts[0]
	copy(m.Source[:], "secret-host:/export")
	copy(m.Point[:], "/mnt/secret")
	copy(m.Root[:], "/secret-root")
	copy(c.Ends.Devices[0].Name[:], "secret-disk")
	return c
}

// Nobody looks again for our own threads: they have not gone on, and do not count as such.
func TestOwnThreadsHaveNotGoneOn(t *testing.T) {
	c := madeUp(t, false, []waiter{{tid: 10, self: true, raw: withFiles([]kcdata.LinuxFile{{Kind: kcdata.FilePipe, Object: anObject}})}})
	c.FileSources = kcdata.FilesHasTable
	c.Ends = &capture.Ends{Taken: kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasPass}}
	s, _ := collated(t, procfs.FS{Root: t.TempDir()}, c)
	if f := threadOf(t, s, 10).Files; len(f) != 1 || f[0].Flags != 0 || s.FilesTaken.Threads != 1 || s.FilesTaken.Moved != 0 {
		t.Errorf("%+v, %+v", f, s.FilesTaken)
	}
}

// What the file says of open files: what became of the threads, ends of those that still wait, sums,
// and each item in its place.
func TestFilesCollated(t *testing.T) {
	s, file := collated(t, procfs.FS{Root: t.TempDir()}, endsWorld(t, false))
	flags := func(tid uint64) uint32 { return threadOf(t, s, tid).Files[0].Flags }
	if flags(10) != kcdata.FileToRead|kcdata.FileStill|kcdata.FileCatches || flags(20) != kcdata.FileMoved || flags(30) != kcdata.FileMoved|kcdata.FileClosed {
		t.Errorf("flags %#x, %#x, %#x", flags(10), flags(20), flags(30))
	}
	if f := threadOf(t, s, 10); f.Files[0].Object != anObject || f.Sockets[0].LocalPort != aPort {
		t.Errorf("%+v", f)
	}
	var tgids []uint32
	for _, e := range s.Ends {
		tgids = append(tgids, e.Tgid)
	}
	if !slices.Equal(tgids, []uint32{20, 22, 23}) || len(s.FUSE) != 2 || len(s.FileLocks) != 1 || len(s.Mounts) != 1 || len(s.Devices) != 1 {
		t.Errorf("ends of %v, %+v", tgids, s.FUSE)
	}
	want := kcdata.LinuxFilesTaken{Sources: kcdata.FilesHasPass | kcdata.FilesHasTable | kcdata.FilesHasUnix, Threads: 4, Files: 5, Sockets: 1, More: 18,
		Closed: 1, Opaque: 1, Moved: 3, Wanted: 3, Ends: 6, Looked: 99, DelayNs: 7}
	if s.FilesTaken == nil || *s.FilesTaken != want {
		t.Errorf("%+v", s.FilesTaken)
	}
	decodes(t, file)
}

// A redacted file has numbers for addresses, the same for the same thing, and no byte of a network
// address, a port, a path or a name of the machine.
func TestFilesRedacted(t *testing.T) {
	s, file := collated(t, procfs.FS{Root: t.TempDir()}, endsWorld(t, true))
	f, e := threadOf(t, s, 10).Files[0], s.Ends[0]
	if f.Object == 0 || f.Object > 20 || e.Of != f.Object || e.Peer != f.Object || e.Object != f.Peer || f.Peer == f.Object || f.File == 0 || e.File != threadOf(t, s, 10).Files[1].File {
		t.Errorf("%+v\n%+v", f, e)
	}
	if s.FUSE[0].Conn != s.Ends[1].Object || s.FUSE[0].Conn == 0 || s.FUSE[1].Conn != 0 {
		t.Errorf("%+v, %+v", s.FUSE, s.Ends[1])
	}
	if f.Inode != 12345 || e.Inode != 12346 || len(s.Devices) != 0 || threadOf(t, s, 10).Sockets[0].BytesIn != 5 || s.Mounts[0].FSType[0] != 'f' {
		t.Error("what is not secret is gone, or a name is not")
	}
	secrets := map[string][]byte{"address": anAddress[:4], "IPv6 address": hisAddress[:8], "port": binary.LittleEndian.AppendUint16(nil, aPort),
		"peer's port": binary.LittleEndian.AppendUint16(nil, hisPort), "name": []byte("secret")}
	for _, addr := range []uint64{anObject, itsPeer, itsFile, otherFile, aConn, otherObject, aMemory, aNode, 0xffff999, 0xffff111} {
		secrets["address of the kernel"] = binary.LittleEndian.AppendUint64(nil, addr)
		for name, b := range secrets {
			if bytes.Contains(file, b) {
				t.Errorf("the file has the %s: % x", name, b)
			}
		}
	}
	decodes(t, file)
}

// Without a look at the machine nothing is said of the threads, and the sums say that.
func TestFilesNotLooked(t *testing.T) {
	for _, short := range []bool{false, true} {
		c := endsWorld(t, false)
		if c.Ends.Taken.Flags = kcdata.FilesTimeUp; !short {
			c.Ends = nil
		}
		s, _ := collated(t, procfs.FS{Root: t.TempDir()}, c)
		flags, taken := threadOf(t, s, 30).Files[0].Flags, s.FilesTaken
		if flags != kcdata.FileClosed || !short && (taken.Flags != kcdata.FilesNoPass|kcdata.FilesNoMounts || taken.Moved != 0 || s.Ends != nil || taken.Files != 5) {
			t.Errorf("%#x, %+v", flags, taken)
		}
	}
	c := madeUp(t, false, []waiter{{tid: 10}})
	if s, _ := collated(t, procfs.FS{Root: t.TempDir()}, c); s.FilesTaken != nil {
		t.Error("nothing was recorded of files, and the file has sums")
	}
}

// Records that are short, too many, or there twice are cut and counted. The rest stays.
func TestFilesDamaged(t *testing.T) {
	good := []kcdata.LinuxFile{{Kind: kcdata.FilePipe, Object: anObject}}
	size := kcdata.SizeOf(&good[0]) - 8
	short := func(w *kcdata.Writer) error { return w.Array(kcdata.TypeLinuxFile, size, 1, make([]byte, size)) }
	c := madeUp(t, true,
		[]waiter{{tid: 10, raw: func(w *kcdata.Writer) error { return errors.Join(withFiles(good)(w), withFiles(good)(w)) }}},
		[]waiter{{tid: 20, raw: withFiles(slices.Repeat(good, kcdata.MaxFilesOfThread+1))}},
		[]waiter{{tid: 30, raw: func(w *kcdata.Writer) error { return w.Struct(kcdata.TypeLinuxFile, &good[0]) }}},
		[]waiter{{tid: 50, raw: short}},
		[]waiter{{tid: 40, raw: func(w *kcdata.Writer) error { return w.StructArray(kcdata.TypeLinuxSocket, []kcdata.LinuxSocket{}) }}})
	c.FileSources = kcdata.FilesHasTable
	s, file := collated(t, procfs.FS{Root: t.TempDir()}, c)
	if n := len(threadOf(t, s, 10).Files); n != 1 || threadOf(t, s, 20).Files != nil || threadOf(t, s, 30).Files != nil || s.FilesTaken.Files != 1 {
		t.Errorf("%d files, %+v", n, s.FilesTaken)
	}
	if !slices.ContainsFunc(s.Warnings, func(w kcdata.Warning) bool { return w.Code == "files_damaged" && strings.HasPrefix(w.Text, "5 ") }) {
		t.Errorf("%+v", s.Warnings)
	}
	if bytes.Contains(file, binary.LittleEndian.AppendUint64(nil, anObject)) {
		t.Error("a record that was to be cut is in the file")
	}
}

// decodes: Apple's decoder reads the file, too.
func decodes(t *testing.T, file []byte) {
	t.Helper()
	if _, faults, err := testread.Decode(file); err != nil || len(faults) > 0 {
		t.Errorf("%v %q", err, faults)
	}
}
