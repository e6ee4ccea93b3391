package snapshot

import (
	"fmt"

	"github.com/cilium/ebpf/link"
)

// hook attaches the program that notes what each worker displaces. That takes
// 0.2 ms, and some ms where one was detached just before: the kernel waits for
// an RCU grace period between the two.
func (m *team) hook() error {
	if m.objects.OnSwitch == nil || m.hooked != nil {
		return nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: m.objects.OnSwitch})
	if err != nil {
		return fmt.Errorf("attach to sched_switch: %w", err)
	}
	m.hooked = l
	return nil
}

func (m *team) unhook() error {
	l := m.hooked
	m.hooked = nil
	if l == nil {
		return nil
	}
	return l.Close()
}

// watchSwitches arms the hook. It is armed only around the stop, and attached
// no longer than that unless the session is to be prompt.
func (m *team) watchSwitches() error {
	if err := m.hook(); err != nil {
		return err
	}
	m.objects.Control.Armed = 1
	return nil
}

func (m *team) stopWatching() {
	m.objects.Control.Armed = 0
	if !m.prompt {
		m.unhook()
	}
}
