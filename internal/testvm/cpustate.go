package testvm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// CPUState is where a CPU of the guest stands.
type CPUState struct {
	CPU  int
	PC   uint64
	Text string // all its registers, as QEMU writes them
}

// Halted says that the CPU waits for an interrupt (amd64 only: QEMU tells it there).
func (s *CPUState) Halted() bool { return strings.Contains(s.Text, "HLT=1") }

// InterruptsOff says that the CPU takes no interrupts: IF of RFLAGS is 0, or PSTATE.I
// is 1 (bit 7).
func (s *CPUState) InterruptsOff() bool {
	if m := rflags.FindStringSubmatch(s.Text); m != nil {
		v, _ := strconv.ParseUint(m[1], 16, 64) // the pattern has digits alone
		return v>>9&1 == 0
	}
	if m := pstate.FindStringSubmatch(s.Text); m != nil {
		v, _ := strconv.ParseUint(m[1], 16, 64)
		return v>>7&1 == 1
	}
	return false
}

var (
	cpuHead = regexp.MustCompile(`(?m)^CPU#(\d+)`)
	rflags  = regexp.MustCompile(`\bRFL=([0-9a-f]+)`)
	pstate  = regexp.MustCompile(`\bPSTATE=([0-9a-f]+)`)
	pc      = regexp.MustCompile(`\b(?:RIP|PC)=([0-9a-f]+)`)
)

// CPUs reads the registers of all CPUs, one after the other; they run meanwhile unless
// the guest is paused or has panicked.
func (g *Guest) CPUs() ([]CPUState, error) {
	text, err := g.HMP("info registers -a")
	if err != nil {
		return nil, err
	}
	var all []CPUState
	heads := cpuHead.FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		s := CPUState{Text: text[h[0]:end]}
		m := pc.FindStringSubmatch(s.Text)
		if m == nil {
			return nil, fmt.Errorf("info registers: no program counter in %q", s.Text)
		}
		if s.CPU, err = strconv.Atoi(text[h[2]:h[3]]); err != nil {
			return nil, err
		}
		if s.PC, err = strconv.ParseUint(m[1], 16, 64); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("info registers: no CPU in %q", text)
	}
	return all, nil
}

// HMP runs a command of QEMU's human monitor and gives what it prints.
func (g *Guest) HMP(command string) (string, error) {
	b, err := g.mon.ask("human-monitor-command", map[string]any{"command-line": command}, qmpWait)
	if err != nil {
		return "", err
	}
	var text string
	err = json.Unmarshal(b, &text)
	return strings.ReplaceAll(text, "\r\n", "\n"), err
}
