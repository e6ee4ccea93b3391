package stop

import (
	"fmt"

	"github.com/cilium/ebpf/link"
)

// hook attaches the program that notes what each worker displaces. That takes
// 0.2 ms, and some ms where one was detached just before: the kernel waits for
// an RCU grace period between the two.
func (m *Team) hook() error {
	if m.Objects.OnSwitch == nil || m.Hooked != nil {
		return nil
	}
	l, err := link.AttachTracing(link.TracingOptions{Program: m.Objects.OnSwitch})
	if err != nil {
		return fmt.Errorf("attach to sched_switch: %w", err)
	}
	m.Hooked = l
	return nil
}

func (m *Team) unhook() error {
	l := m.Hooked
	m.Hooked = nil
	if l == nil {
		return nil
	}
	return l.Close()
}

// watchSwitches arms the hook. It is armed only around the stop, and attached
// no longer than that unless the session is to be prompt.
func (m *Team) watchSwitches() error {
	if err := m.hook(); err != nil {
		return err
	}
	m.Objects.Control.Armed = 1
	return nil
}

func (m *Team) stopWatching() {
	m.Objects.Control.Armed = 0
	if !m.Prompt {
		m.unhook()
	}
}
