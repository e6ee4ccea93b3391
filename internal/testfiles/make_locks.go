//go:build linux

package testfiles

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stackshot/kcdata"
)

// locks has one file for each sort of lock. Holder A has the lock, and the waiter an open
// file description of its own. The file of flock has a lease, too.
func (m *maker) locks() {
	for _, how := range []string{"flock", "posix", "ofd"} {
		path := filepath.Join(m.dir, how)
		m.must(os.WriteFile(path, []byte("0123456789"), 0o600))
		mode := unix.O_RDWR
		if how == "flock" { // a lease is refused to a file that somebody may write
			mode = unix.O_RDONLY
		}
		open := func() *os.File { return m.file(unix.Open(path, mode|unix.O_CLOEXEC, 0)) }
		a, fd := m.f.A.give(open()), m.f.Waiter.give(open())
		m.f.A.plan.Locks = append(m.f.A.plan.Locks, lock{How: how, Fd: a, Start: 3})
		if how == "flock" {
			m.f.B.plan.Locks = append(m.f.B.plan.Locks, lock{How: "lease", Fd: m.f.B.give(open())})
		}
		file := File{Fd: fd, Kind: kcdata.FileRegular, Ends: []End{{Process: m.f.A, Fd: a, Flags: kcdata.EndLocks}}}
		m.call(call{Name: how, How: how, Fds: []int{fd}, Lock: lock{How: how, Fd: fd, Start: 3}}, file)
	}
}
