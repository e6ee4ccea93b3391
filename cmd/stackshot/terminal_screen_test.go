package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// terminal is a real one of tmux's, of a size, in which a shell runs.
type terminal struct {
	t             *testing.T
	socket        string
	dir           string // where the shell works
	width, height int
}

// prompt shows the exit code of the command before.
var prompt = regexp.MustCompile(`^\[([0-9]+)\]\$$`)

// A tmux of its own, without a line of its own. The shell ends by itself.
const (
	tmuxConf  = "set -g status off\nset -g default-terminal tmux-256color\nset -g history-limit 5000\n"
	shellLife = "120"
)

func newTerminal(t *testing.T, width, height int) *terminal {
	t.Helper()
	testneed.Program(t, "tmux")
	conf := filepath.Join(t.TempDir(), "conf")
	if err := os.WriteFile(conf, []byte(tmuxConf), 0o600); err != nil {
		t.Fatal(err)
	}
	// The path of a socket is short.
	socket, err := os.MkdirTemp("", "tmux-")
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t, filepath.Join(socket, "s"), t.TempDir(), width, height}
	t.Cleanup(func() {
		exec.Command("tmux", "-S", x.socket, "kill-server").Run()
		os.RemoveAll(socket)
	})
	x.tmux("-f", conf, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", x.dir,
		"env", "-i", "PATH="+programDir+":"+os.Getenv("PATH"), "HOME=/nonexistent", "TERM=tmux-256color", "LANG=C.UTF-8", "PS1=[$?]$ ",
		"timeout", "--foreground", shellLife, "sh", "-i")
	x.await("")
	return x
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// shown is what a terminal shows after a command.
type shown struct {
	text   string // the prompt behind it left out
	colour string // the same with escape sequences
	code   int
	above  int // lines that have left the terminal
	height int // lines of the command's output
}

// run has the shell do a command on a cleared terminal, and waits until it prompts again.
func (x *terminal) run(command string) shown {
	x.t.Helper()
	x.tmux("send-keys", "-R")
	x.tmux("clear-history")
	x.tmux("send-keys", "-l", command)
	x.tmux("send-keys", "Enter")
	s := x.await(command)
	s.above, _ = strconv.Atoi(strings.TrimSpace(x.tmux("display-message", "-p", "#{history_size}")))
	s.colour = x.tmux("capture-pane", "-p", "-e")
	return s
}

// await waits for a prompt in the last line, below the line of the command.
func (x *terminal) await(command string) (s shown) {
	x.t.Helper()
	err := testtask.WaitFor(defaultLimit, func() (bool, error) {
		all := strings.TrimRight(x.tmux("capture-pane", "-p", "-J", "-S", "-"), "\n ")
		before, last, _ := cutLast(all)
		m := prompt.FindStringSubmatch(strings.TrimRight(last, " "))
		if m == nil || command != "" && !strings.Contains(before, command) {
			return false, nil
		}
		s.code, _ = strconv.Atoi(m[1])
		if _, out, found := strings.Cut(before, command+"\n"); found {
			s.height = strings.Count(out, "\n") + 1
		}
		s.text, _, _ = cutLast(strings.TrimRight(x.tmux("capture-pane", "-p"), "\n "))
		return true, nil
	})
	if err != nil {
		x.t.Fatalf("after %q: no prompt: %v\n%s", command, err, x.tmux("capture-pane", "-p"))
	}
	return s
}

// cutLast takes the last line off.
func cutLast(s string) (before, last string, found bool) {
	i := strings.LastIndexByte(s, '\n')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// file is the snapshot that a command wrote where the shell works.
func (x *terminal) file() string {
	x.t.Helper()
	names, err := filepath.Glob(x.dir + "/*.kcdata*")
	if err != nil || len(names) != 1 {
		x.t.Fatalf("files %q: %v", names, err)
	}
	return names[0]
}

// lines are those of a text that are not empty, their ends trimmed.
func lines(text string) (all []string) {
	for line := range bytes.Lines([]byte(text)) {
		if s := strings.TrimRight(string(line), " \n"); s != "" {
			all = append(all, s)
		}
	}
	return all
}
