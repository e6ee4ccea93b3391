//go:build linux

package userlab

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// await reads the ready line, then asks /proc until it agrees.
func (p *Process) await(l launch) error {
	deadline := time.Now().Add(readyTime)
	if !l.quiet {
		if err := p.readReady(deadline); err != nil {
			return err
		}
	}
	before := map[int]uint64{}
	for {
		err := p.agrees(l)
		if err == nil && l.spin > 0 {
			err = p.spins(before)
		}
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// spins wants two ticks in user mode of every running thread since the first
// call, which is kept in before: one that has just said that it is ready may be
// on its way still.
func (p *Process) spins(before map[int]uint64) error {
	for _, pid := range p.Members {
		running, err := userTicks(pid)
		if err != nil {
			return err
		}
		for tid, now := range running {
			if from, seen := before[tid]; !seen {
				before[tid] = now
				return fmt.Errorf("thread %d has begun to run", tid)
			} else if now < from+2 {
				return fmt.Errorf("thread %d has run for %d ticks", tid, now-from)
			}
		}
	}
	return nil
}

func (p *Process) readReady(deadline time.Time) error {
	p.outFile.SetReadDeadline(deadline)
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return fmt.Errorf("no ready line: %w", err)
		}
		if says, ok := strings.CutPrefix(strings.TrimSpace(line), readyLine); ok {
			p.Says = strings.Fields(says)
			return nil
		}
	}
}

// agrees holds /proc against l, and lists the members.
func (p *Process) agrees(l launch) error {
	members, err := family(p.Pid)
	if err != nil {
		return err
	}
	p.Members = members
	if len(members) < l.members {
		return fmt.Errorf("%d processes, want %d", len(members), l.members)
	}
	threads, awake := 0, 0
	for _, pid := range members {
		states, err := threadStates(pid)
		if errors.Is(err, os.ErrNotExist) && pid != p.Pid {
			continue // ended meanwhile
		}
		if err != nil {
			return err
		}
		threads += len(states)
		for _, s := range states {
			if s == 'R' {
				awake++
			}
		}
	}
	switch {
	case threads < l.threads:
		return fmt.Errorf("%d threads, want %d", threads, l.threads)
	case !l.any && awake != l.spin:
		return fmt.Errorf("%d threads run, want %d", awake, l.spin)
	}
	return nil
}

// yield gives every thread the last place, so that spinners keep nobody up. Not
// before they are ready: on a busy machine that would take for ever.
func (p *Process) yield() {
	for _, pid := range p.Members {
		tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, t := range tasks {
			if tid, err := strconv.Atoi(t.Name()); err == nil {
				unix.Setpriority(unix.PRIO_PROCESS, tid, 19)
			}
		}
	}
}
