package snapshot

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
	"stackshot/kcdata"
)

// elf64 is elf32's program for x86-64 (System V ABI, AMD64 supplement), below 4 GiB.
func elf64(code []byte) []byte {
	const base, head, phdr = 0x08048000, 64, 56
	le := binary.LittleEndian
	size := uint64(head + phdr + len(code))
	b := append([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, make([]byte, 9)...)
	b = le.AppendUint32(le.AppendUint16(le.AppendUint16(b, 2), 62), 1) // ET_EXEC, EM_X86_64, version
	for _, v := range []uint64{base + head + phdr, head, 0} {
		b = le.AppendUint64(b, v) // entry, program headers, sections
	}
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{head, phdr, 1, 64, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(le.AppendUint32(b, 1), 5) // PT_LOAD, readable and executable
	for _, v := range []uint64{0, base, base, size, size, 0x1000} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}

// Futex calls of the 32-bit ABI, of a 32-bit program and by int 0x80 of a 64-bit one, whose
// registers have more bits than the call's arguments: the word, and the bytes around.
func TestFutexesOfThe32BitABI(t *testing.T) {
	testneed.Live(t)
	requireBPF(t)
	const (
		base, word, timeout, end = 0x08048000, 0x08048100, 0x08048140, 0x08048200
		value                    = 0x5a5a1234
		junk                     = 0x7777_7777 << 32
	)
	le := binary.LittleEndian
	registers := []byte{0xbb, 0xb9, 0xba, 0xbe} // mov ebx, ecx, edx, esi
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
	const private, timed = kcdata.FutexCompat | kcdata.FutexPrivate, kcdata.FutexTimed
	want := map[uint64]kcdata.LinuxFutex{}
	for _, c := range []struct {
		name  string
		elf   func([]byte) []byte
		code  []byte
		flags uint32
	}{
		{"futex32", elf32, call32(240, word, futexSame, value, 0), private},
		{"time64", elf32, call32(422, word, futexSame, value, timeout), private | timed},
		{"futex64", elf64, call64(240, word, futexSame, value, 0), private},
	} {
		code := append(c.code, 0xcd, 0x80, 0xeb, 0xfe) // int 0x80, then for ever
		at := base + len(c.elf(nil))
		code = append(code, make([]byte, end-at-len(code))...)
		for i := word - at - 16; i < word-at+24; i++ {
			code[i] = byte(i)
		}
		le.PutUint32(code[word-at:], value)
		le.PutUint64(code[timeout-at:], 3600) // s
		f := kcdata.LinuxFutex{Addr: word, Flags: c.flags, Expected: value, Have: 0x3ff}
		copy(f.Around[:], code[word-at-16:])
		want[uint64(startImage(t, c.name, c.elf(code)))] = f
	}
	for _, engineName := range userEngines() {
		got := windowOf(t, engineName, Options{UserStacks: UserStacksOff}, bpftest.Knobs{}, nil)
		for pid, f := range want {
			th := got[pid]
			if th == nil || len(th.Futexes) != 1 || th.Futexes[0].Place == 0 {
				t.Errorf("%s: %d: %+v", engineName, pid, th)
				continue
			}
			found := th.Futexes[0]
			if found.Place = 0; found != f {
				t.Errorf("%s: %s:\n%+v, want\n%+v", engineName, th.Name, found, f)
			}
		}
	}
}

// startImage starts a program that is to wait for a futex, and ends it with the test.
func startImage(t *testing.T, name string, image []byte) (pid int) {
	t.Helper()
	file := t.TempDir() + "/" + name
	if err := os.WriteFile(file, image, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file)
	if err := cmd.Start(); err != nil {
		t.Skipf("this kernel runs no 32-bit programs: %v", err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	err := testtask.WaitFor(slow(5*time.Second), func() (bool, error) {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stack")
		return bytes.Contains(b, []byte("futex_wait")), err
	})
	if err != nil {
		t.Fatalf("%s waits for no futex: %v", name, err)
	}
	return cmd.Process.Pid
}
