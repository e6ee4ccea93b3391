package snapshot

import (
	"encoding/binary"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// files32 are the descriptors that the programs get: 0 a pipe, 3 a socket, 4 a locked file.
func files32(t *testing.T) (pipe *os.File, extra []*os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(p[0]), "ours"), os.NewFile(uintptr(p[1]), "theirs")
	path := t.TempDir() + "/locked"
	locked, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const ofdSetlk = 37
	if err := unix.FcntlFlock(locked.Fd(), ofdSetlk, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{r, w, ours, theirs, locked, other} {
			f.Close()
		}
	})
	return r, []*os.File{theirs, other}
}

// Calls of the 32-bit ABI: numbers, registers and structures are other ones.
func TestFilesOfThe32BitABI(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	const base, data, end, junk = 0x08048000, 0x08048200, 0x08048300, 0x7777_7777 << 32
	le := binary.LittleEndian
	registers := []byte{0xbb, 0xb9, 0xba, 0xbe, 0xbf} // mov ebx, ecx, edx, esi, edi
	call32 := func(nr uint32, args ...uint32) []byte {
		code := le.AppendUint32([]byte{0xb8}, nr) // mov eax
		for i, v := range args {
			code = le.AppendUint32(append(code, registers[i]), v)
		}
		return code
	}
	call64 := func(nr uint32, args ...uint32) []byte {
		code := le.AppendUint32([]byte{0xb8}, nr)
		for i, v := range args {
			code = le.AppendUint64(append(code, 0x48, registers[i]), junk|uint64(v))
		}
		return code
	}
	words := func(list ...uint32) (b []byte) {
		for _, w := range list {
			b = le.AppendUint32(b, w)
		}
		return b
	}
	pipe := kcdata.LinuxFile{Op: kcdata.FileOpRead, Kind: kcdata.FilePipe, Flags: kcdata.FileToRead | kcdata.FileEmpty}
	polled := func(f kcdata.LinuxFile, flags uint32) kcdata.LinuxFile {
		f.Op, f.Events = kcdata.FileOpPoll, unix.POLLIN
		f.Flags |= kcdata.FilePolled | flags
		return f
	}
	socket := kcdata.LinuxFile{Fd: 3, Op: kcdata.FileOpRead, Kind: kcdata.FileSocket, Flags: kcdata.FileToRead | kcdata.FilePeerKnown}
	lock := kcdata.LinuxFile{Fd: 4, Op: kcdata.FileOpPOSIX, Kind: kcdata.FileRegular, LockHow: unix.F_RDLCK, LockStart: 7, LockLen: 9}
	far := lock
	far.LockStart, far.LockLen = 1<<33|5, 1<<34|6
	ofd := far
	ofd.Op = kcdata.FileOpOFD
	timed := polled(pipe, kcdata.FileTimed)
	want := map[uint64][]kcdata.LinuxFile{}
	for _, c := range []struct {
		name string
		elf  func([]byte) []byte
		code []byte
		data []byte
		want []kcdata.LinuxFile
	}{
		{"read32", elf32, call32(3, 0, data, 16), nil, []kcdata.LinuxFile{pipe}},
		{"read64", elf64, call64(3, 0, data, 16), nil, []kcdata.LinuxFile{pipe}},
		{"poll", elf32, call32(168, data, 3, 0xffffffff), words(0, 1, 0xffffffff, 1, 3, 1), []kcdata.LinuxFile{polled(pipe, 0), polled(socket, 0)}},
		{"polltimed", elf64, call64(168, data, 1, 3_600_000), words(0, 1), []kcdata.LinuxFile{timed}},
		{"select", elf32, call32(142, 4, data, 0, 0, 0), words(0xf9), []kcdata.LinuxFile{polled(pipe, 0), polled(socket, 0)}},
		{"socketcall", elf32, call32(102, 10, data), words(3, data, 16, 0, 0), []kcdata.LinuxFile{socket}},
		{"fcntl", elf32, call32(55, 4, 7, data), words(0, 7, 9, 0), []kcdata.LinuxFile{lock}},
		{"fcntl64", elf32, call32(221, 4, 14, data), words(0, 5, 2, 6, 4, 0), []kcdata.LinuxFile{far}},
		{"fcntlofd", elf32, call32(221, 4, 38, data), words(0, 5, 2, 6, 4, 0), []kcdata.LinuxFile{ofd}},
	} {
		code := append(c.code, 0xcd, 0x80, 0xeb, 0xfe) // int 0x80, then for ever
		at := base + len(c.elf(nil))
		code = append(code, make([]byte, end-at-len(code))...)
		copy(code[data-at:], c.data)
		want[uint64(startCompat(t, c.name, c.elf(code)))] = c.want
	}
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{UserStacks: UserStacksOff}, bpftest.Knobs{}, nil)
		for pid, list := range want {
			th := got[pid]
			if th == nil || len(th.Files) != len(list) || th.Wait == nil || th.Wait.Files != uint32(len(list)) {
				t.Errorf("%s: %d: %+v, want %+v", engineName, pid, th, list)
				continue
			}
			for i, f := range th.Files {
				found := kcdata.LinuxFile{Flags: f.Flags &^ foundAfterwards, Op: f.Op, Kind: f.Kind, Fd: f.Fd, Events: f.Events, LockHow: f.LockHow, LockStart: f.LockStart, LockLen: f.LockLen}
				if found != list[i] || f.Object == 0 || f.File == 0 {
					t.Errorf("%s: %s:\n%+v, want\n%+v", engineName, th.Name, f, list[i])
				}
			}
		}
	}
}

// startCompat starts a program that is to wait in a call, and ends it with the test.
func startCompat(t *testing.T, name string, image []byte) (pid int) {
	t.Helper()
	file := t.TempDir() + "/" + name
	if err := os.WriteFile(file, image, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file)
	cmd.Stdin, cmd.ExtraFiles = files32(t)
	if err := cmd.Start(); err != nil {
		t.Skipf("this kernel runs no 32-bit programs: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	err := testtask.WaitFor(slow(5*time.Second), func() (bool, error) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/syscall")
		return !strings.HasPrefix(string(b), "running") && !strings.HasPrefix(string(b), "-1"), err
	})
	if err != nil {
		t.Fatalf("%s waits in no call: %v", name, err)
	}
	return cmd.Process.Pid
}
