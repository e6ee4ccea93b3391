package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stackshot/internal/hangscenes"
	"stackshot/internal/show"
	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/kcdata"
	"stackshot/snapshot"
)

// TestFirstScreens: in a terminal, `stackshot` alone names the culprit of each machine that
// hangs or is slow, with the word that says why, and of machines that are well it names nobody.
// All of it fits, each number is of somebody in the file, and each command that it prints runs.
//
// A scene may load the whole machine, and a screen is of all of it. So this runs only by itself,
// where STACKSHOT_SCENES asks for it: 1 for each scene at one size, all for both.
func TestFirstScreens(t *testing.T) {
	testneed.Lab(t, testneed.Machine)
	form := os.Getenv("STACKSHOT_SCENES")
	if form == "" {
		t.Skip("wants the machine to itself: STACKSHOT_SCENES=1")
	}
	needRoot(t)
	hangs := userlab.NewHangs(t)
	sizes := [][2]int{{80, 24}, {200, 50}}
	for i, scene := range hangscenes.All() {
		for k, size := range sizes {
			if k != i%2 && form != "all" {
				continue
			}
			name := fmt.Sprintf("%s/%dx%d", scene.Name, size[0], size[1])
			for try, more := 1, true; more; try++ {
				// Each try is a test of its own, so that none begins beside the processes of the last.
				more = false // also where it ends before it returns, or -run leaves it out
				t.Run(fmt.Sprint(name, "/", try), func(t *testing.T) {
					more = firstScreen(t, scene, hangs, size, scene.Again && try < 5)
				})
			}
		}
	}
}

// firstScreen makes a scene, and is true where its screen is wrong and is to be tried again.
func firstScreen(t *testing.T, scene *hangscenes.Scene, hangs *userlab.Hangs, size [2]int, again bool) bool {
	if why := scene.Lacks(); why != "" {
		t.Skip(why)
	}
	x := &terminal{t, t.TempDir(), size[0], size[1]}
	if scene.Healthy {
		calm(t)
	}
	s, wrong := x.judged(scene, hangs)
	if again && len(wrong) > 0 {
		t.Logf("once more: %v\n%s", wrong, s.text)
		return true
	}
	for _, err := range wrong {
		t.Error(err)
	}
	x.fits(s)
	x.commandsRun(s)
	if t.Failed() {
		t.Logf("\n%s", s.text)
	}
	return false
}

// calm waits until the machine has forgotten the scenes before: for 10 s and more a screen may
// tell of the pressure that they made, and rightly so.
func calm(t *testing.T) {
	t.Helper()
	for range 60 {
		b, err := os.ReadFile("/proc/pressure/cpu")
		if err != nil {
			return // no pressure is told here
		}
		var percent float64
		if _, err := fmt.Sscanf(string(b), "some avg10=%g", &percent); err != nil {
			t.Fatalf("/proc/pressure/cpu: %v: %q", err, b)
		}
		if percent < 1 {
			return
		}
		time.Sleep(time.Second)
	}
	t.Log("the machine has pressure by others")
}

// judged makes a scene, and says what is wrong with its first screen.
func (x *terminal) judged(scene *hangscenes.Scene, hangs *userlab.Hangs) (shown, []error) {
	x.t.Helper()
	standing := scene.Start(x.t, hangs)
	s := x.first()
	keepScreen(x.t, standing, [2]int{x.width, x.height}, s, x.file())
	return s, standing.Wrong(s.text, snapshotOf(x.t, x.file()))
}

// first is what `stackshot` alone shows. It waits its turn as invocation.run does.
func (x *terminal) first() shown {
	x.t.Helper()
	s := x.run("stackshot")
	for range 5 {
		if !strings.Contains(s.text, snapshot.ErrBusy.Error()) {
			break
		}
		s = x.run("stackshot")
	}
	return s
}

// fits wants the whole output and the prompt behind it on the terminal: only the line of the
// command itself may have left it.
func (x *terminal) fits(s shown) {
	x.t.Helper()
	rows := 0
	for line := range strings.Lines(s.text) {
		rows += max(1, (show.Cells(strings.TrimSuffix(line, "\n"))+x.width-1)/x.width)
	}
	if rows+1 > x.height || strings.Contains(s.text, "\x1b") {
		x.t.Errorf("%d rows and the prompt in a terminal of %d: %q", rows, x.height, s.text)
	}
}

// command is one that a screen tells to run.
var command = regexp.MustCompile(`\bstackshot (?:hang|report|latency|list|doctor|take)\b[^|()]*?(?:  |$)`)

// commandsRun runs each command of a screen as it stands there.
func (x *terminal) commandsRun(s shown) {
	x.t.Helper()
	found := 0
	for line := range strings.Lines(s.text) {
		for _, c := range command.FindAllString(strings.TrimRight(line, " \n"), -1) {
			found++
			if o := x.run(c + " >out"); o.code != 0 && o.code != exitIncomplete && o.code != codeHangs {
				x.t.Errorf("%q: exit code %d: %s", c, o.code, o.text)
			}
		}
	}
	if found == 0 {
		x.t.Error("the screen tells no command")
	}
}

// terminal is one of a size; commands run in its directory.
type terminal struct {
	t             *testing.T
	dir           string
	width, height int
}

// shown is what a command wrote to it, without colours.
type shown struct {
	text string
	code int
}

func (x *terminal) run(command string) (s shown) {
	x.t.Helper()
	text := onTerminal(x.t, func(slave *os.File) {
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(x.height), Col: uint16(x.width)}); err != nil {
			x.t.Fatal(err)
		}
		c := exec.Command("sh", "-c", command)
		c.Dir, c.Stdin, c.Stdout, c.Stderr = x.dir, slave, slave, slave
		c.Env = []string{"PATH=" + programDir + ":" + os.Getenv("PATH"), "HOME=/nonexistent", "TERM=xterm", "LANG=C.UTF-8"}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		c.Run()
		s.code = c.ProcessState.ExitCode()
	})
	s.text = escape.ReplaceAllString(strings.ReplaceAll(erased.ReplaceAllString(text, ""), "\x1b[K", ""), "")
	return s
}

// erased is what a line showed, such as progress, until something else was written over it.
var erased = regexp.MustCompile(`(?m)^.*\r(?:\x1b\[K)?`)

// file is the snapshot that a command wrote.
func (x *terminal) file() string {
	x.t.Helper()
	names, err := filepath.Glob(x.dir + "/*.kcdata*")
	if err != nil || len(names) != 1 {
		x.t.Fatalf("files %q: %v", names, err)
	}
	return names[0]
}

// keepScreen writes a screen, and the file that it is of, trimmed, to where STACKSHOT_SCREENS
// says: the snapshots of internal/hangscenes/testdata are made so.
func keepScreen(t *testing.T, r hangscenes.Standing, size [2]int, s shown, file string) {
	t.Helper()
	dir := os.Getenv("STACKSHOT_SCREENS")
	if dir == "" {
		return
	}
	if o := stackshot(t, "symbolize", file); o.code != exitWhole && o.code != exitIncomplete { // whom names tell apart is told apart later, too
		t.Errorf("symbolize: %d %s", o.code, o.stderr)
	}
	b := read(t, file)
	plain, _, err := kcdata.Unwrap(b, 1<<30)
	if err == nil {
		plain, err = r.Trim(plain)
	}
	var packed bytes.Buffer
	if err == nil {
		err = kcdata.Compress(&packed, plain, kcdata.EnvelopeZstd)
	}
	screen := filepath.Join(dir, fmt.Sprintf("%s-%dx%d.txt", r.Name, size[0], size[1]))
	for _, err := range []error{err, os.WriteFile(filepath.Join(dir, r.Name+".kcdata.zst"), packed.Bytes(), 0o644),
		os.WriteFile(screen, []byte(s.text), 0o644)} {
		if err != nil {
			t.Error(err)
		}
	}
}
