package foreign

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/mounts"
)

// maxStuck is how many readers may hang at a time, of all runs on this machine.
const maxStuck = 4

const slotSize = 64 // bytes of a slot's text

// slots is the file in which readers that hang are noted: maxStuck texts, "pid
// major:minor seconds". A slot counts while its byte is locked, through an open file
// description that the reader has too (F_OFD_SETLK): that ends with the reader, and
// no sooner, whoever started it and however that ended. Nobody but its owner can open
// the file, so nobody else can pretend.
type slots struct{ path string } // "": there is no place for it; then each run counts its own

// stuck is what a slot says.
type stuck struct {
	pid   int
	dev   mounts.Device
	since time.Time
}

// slotPlaces are where the file may be, in memory; the tests of this package have
// their own.
var slotPlaces = []string{
	"/run/stackshot.readers", fmt.Sprintf("/run/user/%d/stackshot.readers", os.Geteuid()),
	fmt.Sprintf("/dev/shm/stackshot-%d.readers", os.Geteuid()),
}

// findSlots finds a place for the file that is ours.
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

// open gives an open file description of its own; nil: there is none to be had.
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

// taken lists the readers that hang now, ours too.
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
		var one stuck // of one that is being written nothing is known, but it counts
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

// mark is a reader's means to be noted.
type mark struct {
	file *os.File
	pid  int
	slot int64
	held bool
	own  bool // the file is only for this
}

// set notes that the reader hangs on a device, if a slot is free.
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

// clear takes the note away: the reader has come loose.
func (m *mark) clear() {
	if m.held {
		unix.FcntlFlock(m.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: m.slot, Len: 1})
	}
	if m.held = false; m.own {
		m.file.Close()
	}
}
