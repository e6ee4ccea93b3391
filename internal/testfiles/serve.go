//go:build linux

package testfiles

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Do has a process of the fixture do something with its descriptors, and gives its answer:
//
//	close FD            0
//	dup FD TO           0; TO is closed before
//	send FD SOCKET      0; by SCM_RIGHTS
//	receive SOCKET      the descriptor that came
//	share               the pid of a new process with the same table of descriptors (CLONE_FILES)
func (p *Process) Do(tb testing.TB, order string, fds ...int) int {
	tb.Helper()
	fmt.Fprintln(p.in, order, strings.Trim(fmt.Sprint(fds), "[]"))
	if !p.out.Scan() {
		tb.Fatalf("testfiles: %s does not answer to %s %v", p.Name, order, fds)
	}
	answer, err := strconv.Atoi(p.out.Text())
	if err != nil {
		tb.Fatalf("testfiles: %s: %s %v: %s", p.Name, order, fds, p.out.Text())
	}
	return answer
}

// serve follows orders until the test has ended.
func serve(in io.Reader) {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		order := strings.Fields(lines.Text())
		fds := make([]int, 2)
		for i, word := range order[1:] {
			fds[i], _ = strconv.Atoi(word)
		}
		if answer, err := obey(order[0], fds[0], fds[1]); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(answer)
		}
	}
	os.Exit(0)
}

func obey(order string, a, b int) (int, error) {
	switch order {
	case "close":
		return 0, unix.Close(a)
	case "dup":
		return 0, unix.Dup3(a, b, 0)
	case "send":
		return 0, unix.Sendmsg(b, []byte{0}, unix.UnixRights(a), nil, 0)
	case "receive":
		return receive(a)
	case "share":
		return share()
	}
	return 0, fmt.Errorf("no order is called %q", order)
}

func receive(socket int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, 0)
	if err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return 0, fmt.Errorf("%d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return 0, fmt.Errorf("%d descriptors: %w", len(fds), err)
	}
	return fds[0], nil
}

// share makes a process with the same table. It does nothing but sleep, so it needs no
// runtime, and it ends with this one, whose main thread made it.
//
//go:norace
//go:nosplit
func share() (int, error) {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_FILES|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e == 0 && pid == 0 {
		unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
		for {
			unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
	if e != 0 {
		return 0, e
	}
	return int(pid), nil
}
