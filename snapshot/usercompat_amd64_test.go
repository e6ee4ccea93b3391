package snapshot

import (
	"encoding/binary"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// elf32 is a static program of one segment for the 80386 (System V ABI, i386
// supplement): an ELF header, one program header, then code.
func elf32(code []byte) []byte {
	const base, head, phdr = 0x08048000, 52, 32
	le := binary.LittleEndian
	size := uint32(head + phdr + len(code))
	b := append([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1}, make([]byte, 9)...)
	for _, v := range []uint16{2, 3} { // ET_EXEC, EM_386
		b = le.AppendUint16(b, v)
	}
	for _, v := range []uint32{1, base + head + phdr, head, 0, 0} { // version, entry, program headers
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{head, phdr, 1, 40, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 0x1000} { // PT_LOAD, readable and executable
		b = le.AppendUint32(b, v)
	}
	return append(b, code...)
}

// A 32-bit process, in a system call and spinning, has its registers and no stack,
// and says why.
func TestUserStackOfA32BitProcess(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	requireBPF(t)
	for name, code := range map[string][]byte{
		"pause": {0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7}, // mov eax, pause; int 0x80; jmp
		"spin":  {0xeb, 0xfe},
	} {
		file := t.TempDir() + "/" + name
		if err := os.WriteFile(file, elf32(code), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(file)
		if err := cmd.Start(); err != nil {
			t.Skipf("this kernel runs no 32-bit programs: %v", err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		unix.Setpriority(unix.PRIO_PROCESS, cmd.Process.Pid, 19)
		awaitComm(t, cmd.Process.Pid, name)
		for _, engineName := range userEngines() {
			s := withUserSide(t, Options{Engine: engineName})
			th := userThread(t, s, cmd.Process.Pid, cmd.Process.Pid)
			w := th.UserWalk
			if w == nil || w.Flags&^kcdata.UserExact != kcdata.UserCompat || len(th.UserChain)+len(th.UserBytes) > 0 {
				t.Errorf("%s, %s: walk %+v, %d links, %d pieces", engineName, name, w, len(th.UserChain), len(th.UserBytes))
			}
			made := userThread(t, session(t, Options{Engine: engineName}), cmd.Process.Pid, cmd.Process.Pid)
			if w = made.UserWalk; w == nil || w.Flags&kcdata.UserCompat == 0 || len(made.User) > 0 {
				t.Errorf("%s, %s: walk %+v, user stack %#x; want none", engineName, name, w, made.User)
			}
			// Its calls have i386's numbers, and /proc cannot tell.
			if compat := th.Linux.Present&kcdata.ThreadCompatCall != 0; compat != (name == "pause") || compat && th.Syscall.Nr != 29 {
				t.Errorf("%s, %s: call %+v, present %#x", engineName, name, th.Syscall, th.Linux.Present)
			}
		}
		_, snap := session(t, Options{Engine: EngineProcfs}).mustTake(t)
		for _, task := range snap.Tasks {
			ours := task.ID == uint64(cmd.Process.Pid)
			if !ours && task.ID != uint64(os.Getpid()) {
				continue
			}
			for _, th := range task.Threads {
				if unsure := th.Linux.Present&kcdata.ThreadCallUnsure != 0; unsure != (ours && name == "pause") {
					t.Errorf("procfs, %s: thread %d %s: call %+v, present %#x", name, th.ID, th.Name, th.Syscall, th.Linux.Present)
				}
			}
		}
	}
}
