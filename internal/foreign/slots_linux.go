package foreign

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/mounts"
)

// maxStuck is how many readers of all runs on this machine may hang at a time.
const maxStuck = 4

const slotSize = 64 // bytes of a slot's text

// slots is the file that lists readers which hang: maxStuck texts, "pid major:minor
// seconds". A slot counts while its byte is locked, through an open file description that
// the reader process shares (F_OFD_SETLK). So the lock ends when the reader ends, not
// when its starter does. Only the file's owner can open it, so no other user can forge an
// entry.
type slots struct{ path string } // "": no place for the file; then each run counts its own readers

// stuck is a reader that hangs, as a slot has it.
type stuck struct {
	pid   int
	dev   mounts.Device
	since time.Time
}

// slotPlaces are the places of the file, in the order in which they are tried: all in
// memory, so that none of them hangs. The tests of this package have their own.
var slotPlaces = []string{
	"/run/stackshot.readers", fmt.Sprintf("/run/user/%d/stackshot.readers", os.Geteuid()),
	fmt.Sprintf("/dev/shm/stackshot-%d.readers", os.Geteuid()),
}

// findSlots takes the first place where the file is ours, or can be made.
func findSlots() slots {
	for _, path := range slotPlaces {
		s := slots{path}
		if f := s.open(); f != nil {
			f.Close()
			return s
		}
	}
	return slots{}
}

// open gives a new open file description; nil: the file cannot be opened, or is not ours.
func (s slots) open() *os.File {
	if s.path == "" {
		return nil
	}
	fd, err := unix.Open(s.path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode != unix.S_IFREG|0o600 || int(st.Uid) != os.Geteuid() {
		unix.Close(fd)
		return nil
	}
	return os.NewFile(uintptr(fd), s.path)
}

// taken lists the readers that hang now, of this run and of others.
func (s slots) taken() (list []stuck) {
	f := s.open()
	if f == nil {
		return nil
	}
	defer f.Close()
	for i := range int64(maxStuck) {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: i, Len: 1}
		if unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) != nil || lock.Type == unix.F_UNLCK {
			continue
		}
		var one stuck // stays empty if its text is just being written; it counts all the same
		b := make([]byte, slotSize)
		n, _ := f.ReadAt(b, i*slotSize)
		var at int64
		if k, _ := fmt.Sscanf(string(bytes.TrimRight(b[:n], "\x00")), "%d %d:%d %d", &one.pid, &one.dev.Major, &one.dev.Minor, &at); k == 4 {
			one.since = time.Unix(at, 0)
		}
		list = append(list, one)
	}
	return list
}

// mark enters a reader in the file of slots.
type mark struct {
	file *os.File // nil: there is no such file
	pid  int      // of the reader
	slot int64    // its slot, if held
	held bool
	own  bool // clear closes the file
}

// set enters that the reader hangs on a device, if a slot is free.
func (m *mark) set(dev mounts.Device) {
	if m.file == nil {
		return
	}
	for i := range int64(maxStuck) {
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: i, Len: 1}
		if unix.FcntlFlock(m.file.Fd(), unix.F_OFD_SETLK, &lock) == nil {
			m.slot, m.held = i, true
			text := make([]byte, slotSize)
			copy(text, fmt.Sprintf("%d %v %d\n", m.pid, dev, time.Now().Unix()))
			m.file.WriteAt(text, i*slotSize)
			return
		}
	}
}

// clear removes the entry when the reader has come loose.
func (m *mark) clear() {
	if m.held {
		unix.FcntlFlock(m.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: m.slot, Len: 1})
	}
	if m.held = false; m.own {
		m.file.Close()
	}
}
