package testvm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// pcNumber is the program counter's in gdb's list of an architecture's registers.
var pcNumber = map[string]int{"amd64": 16, "arm64": 32}

// OopsAt lets the next CPU that comes to a kernel address jump to address 0 instead: a
// true oops of the kernel there, "NULL pointer dereference", without a module. In an
// interrupt it is a panic ("Fatal exception in interrupt"), elsewhere with
// kernel.panic_on_oops. trigger brings a CPU there; the guest runs while it does. addr is
// the start of a function, as /proc/kallsyms in the guest has it: __handle_sysrq with
// SendKeys or SerialBreak as trigger is a hard interrupt.
func (g *Guest) OopsAt(ctx context.Context, addr uint64, trigger func() error) error {
	return g.stopAt(ctx, addr, trigger, func(s *stub) { s.want(fmt.Sprintf("P%x=%016x", pcNumber[g.arch], 0), "OK") })
}

// undefined is an instruction that there is not, as bytes in hex: ud2, udf.
var undefined = map[string]string{"amd64": "0f0b", "arm64": "00000000"}

// UndefinedAt is OopsAt by an undefined instruction, which stays at the address. The program counter
// lies in the kernel's text, so the kernel unwinds the stack to its end, as from address 0 it does not.
func (g *Guest) UndefinedAt(ctx context.Context, addr uint64, trigger func() error) error {
	text := undefined[g.arch]
	return g.stopAt(ctx, addr, trigger, func(s *stub) { s.want(fmt.Sprintf("M%x,%x:%s", addr, len(text)/2, text), "OK") })
}

// stopAt stops the guest when the next CPU comes to a kernel address, does something to that CPU, and lets
// the guest run on.
func (g *Guest) stopAt(ctx context.Context, addr uint64, trigger func() error, do func(*stub)) (err error) {
	dir, err := os.MkdirTemp("", "gdb-") // a socket's path is short
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	if text, err := g.HMP("gdbserver unix:" + path + ",server=on,wait=off"); err != nil || strings.Contains(text, "ould not") {
		return fmt.Errorf("gdbserver: %q, %v", text, err)
	}
	defer func() {
		_, herr := g.HMP("gdbserver none")
		err = errors.Join(err, herr)
	}()
	conn, err := net.Dial("unix", path) // stops the guest
	if err != nil {
		return err
	}
	defer conn.Close()
	d, ok := ctx.Deadline()
	if !ok {
		d = time.Now().Add(oopsWait)
	}
	conn.SetDeadline(d)
	s := stub{conn: conn, in: bufio.NewReader(conn)}
	s.send("qXfer:features:read:target.xml:0,1000") // or QEMU takes no register by its number
	s.receive()
	at := fmt.Sprintf("1,%x,1", addr)
	s.want("Z"+at, "OK")
	s.send("c")
	if s.err == nil {
		s.err = trigger()
	}
	stop := s.receive() // T05thread:02;
	_, thread, _ := strings.Cut(stop, "thread:")
	thread, _, _ = strings.Cut(thread, ";")
	if s.err == nil && thread == "" {
		s.err = fmt.Errorf("stopped by %q", stop)
	}
	s.want("Hg"+thread, "OK")
	s.want("z"+at, "OK")
	do(&s)
	s.want("D", "OK") // and the guest runs on
	if s.err != nil {
		return fmt.Errorf("gdb at %#x: %w", addr, s.err)
	}
	return nil
}

// stub is QEMU's gdbstub: packets $text#sum, each answered by + (gdb's remote serial
// protocol). The first error sticks.
type stub struct {
	conn net.Conn
	in   *bufio.Reader
	err  error
}

func (s *stub) send(text string) {
	if s.err != nil {
		return
	}
	var sum byte
	for i := range len(text) {
		sum += text[i]
	}
	_, s.err = fmt.Fprintf(s.conn, "$%s#%02x", text, sum)
}

// paused is what QEMU says unasked when the connection has stopped the guest.
const paused = "T02"

// receive reads a packet, passing over what acknowledges ours.
func (s *stub) receive() string {
	for {
		if text := s.packet(); !strings.HasPrefix(text, paused) {
			return text
		}
	}
}

func (s *stub) packet() string {
	if s.err != nil {
		return ""
	}
	var text string
	if _, s.err = s.in.ReadString('$'); s.err == nil {
		text, s.err = s.in.ReadString('#')
	}
	if s.err == nil {
		_, s.err = s.in.Discard(2)
	}
	if s.err == nil {
		_, s.err = s.conn.Write([]byte("+"))
	}
	return strings.TrimSuffix(text, "#")
}

func (s *stub) want(text, answer string) {
	s.send(text)
	if got := s.receive(); s.err == nil && got != answer {
		s.err = fmt.Errorf("%s: %q", text, got)
	}
}

// oopsWait bounds OopsAt's wait if its context does not.
const oopsWait = time.Minute
