// Package pager shows what a command writes to a terminal by the user's pager, as git does.
//
//	P1  Whoever leaves the pager early ends the writing ([unix.EPIPE]), not the process: its
//	    exit code stays its own.
//	P2  While the pager runs, Ctrl-C and Ctrl-\ are the pager's. The process ends after it, and
//	    if a signal ends the process (SIGTERM, SIGHUP), the pager ends first.
//	P3  If the pager does not start, every byte goes to the terminal, once, and one line says why.
//	P4  A pager that was killed leaves the terminal as it was before.
package pager

import (
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
)

// Command is the pager that the user wants: $STACKSHOT_PAGER, else $PAGER, else less. "" is none: out is
// no terminal, or one that cannot move its cursor, or the user wants none. asked says that the user named it.
func Command(out *os.File) (command string, asked bool) {
	if !term.IsTerminal(int(out.Fd())) {
		return "", false
	}
	if name := os.Getenv("TERM"); name == "" || name == "dumb" {
		return "", false
	}
	return chosen(os.LookupEnv)
}

// byDefault is less with colours, whatever $LESS says of them.
const byDefault = "less -R"

func chosen(env func(string) (string, bool)) (command string, asked bool) {
	for _, name := range []string{"STACKSHOT_PAGER", "PAGER"} {
		command, set := env(name)
		switch command = strings.TrimSpace(command); {
		case set && (command == "" || command == "cat"):
			return "", true
		case set:
			return command, true
		}
	}
	return byDefault, false
}

// shellCharacters are those of a command that only a shell understands.
const shellCharacters = "|&;<>()$`\\\"'*?[]{}#~=%!\n"

// process is the pager's process, before it starts. A shell is asked only where the command
// needs one: that of another command would tell too late that there is no such program.
func process(command string) *exec.Cmd {
	if strings.ContainsAny(command, shellCharacters) {
		return exec.Command("/bin/sh", "-c", command)
	}
	words := strings.Fields(command)
	return exec.Command(words[0], words[1:]...)
}

// environment is ours, with git's settings for less and lv where the user has none: less ends at once if
// everything fits on the screen (F), shows colours (R) and leaves the text there (X). Under sudo
// less starts no other program: that would be one of root's.
func environment(environ []string, env func(string) (string, bool)) []string {
	defaults := []string{"LESS=FRX", "LV=-c"}
	if uid, set := env("SUDO_UID"); set && uid != "0" {
		defaults = append(defaults, "LESSSECURE=1")
	}
	for _, d := range defaults {
		name, _, _ := strings.Cut(d, "=")
		if _, set := env(name); !set {
			environ = append(environ, d)
		}
	}
	return environ
}
