package testvm

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// WaitLine waits until the console has a line that matches, and returns it. It
// begins where the last WaitLine ended. The error names the pattern and the last
// line there was.
func (g *Guest) WaitLine(ctx context.Context, re *regexp.Regexp) (string, error) {
	return g.text.await(ctx, re, g.done, "guest")
}

// Type writes to the console's line, as a terminal would.
func (g *Guest) Type(s string) error {
	_, err := g.tty.Write([]byte(s))
	return err
}

// SendKeys presses keys of the emulated keyboard together, as QEMU names them:
// "alt", "sysrq", "t". arm64's machine has no keyboard of its own; give it one
// (Config.QEMU).
func (g *Guest) SendKeys(keys ...string) error {
	var all []map[string]string
	for _, k := range keys {
		all = append(all, map[string]string{"type": "qcode", "data": k})
	}
	return g.mon.command("send-key", map[string]any{"keys": all})
}

// SerialBreak sends a break on the console's line and then keys: SysRq by serial
// line, where the kernel was told sysrq_always_enabled.
func (g *Guest) SerialBreak(keys string) error {
	if err := g.mon.command("chardev-send-break", map[string]any{"id": "console"}); err != nil {
		return err
	}
	return g.Type(keys)
}

// NMI interrupts every CPU with a non-maskable interrupt.
func (g *Guest) NMI() error { return g.mon.command("inject-nmi", nil) }

// Pause stops all CPUs of the guest, and its clock, until Resume.
func (g *Guest) Pause() error { return g.mon.command("stop", nil) }

// Resume lets the guest's CPUs run on.
func (g *Guest) Resume() error { return g.mon.command("cont", nil) }

// Reset is the reset button: with Config.Reboot the guest boots again.
func (g *Guest) Reset() error { return g.mon.command("system_reset", nil) }

// Event waits for an event of QEMU, such as RESET or GUEST_PANICKED.
func (g *Guest) Event(ctx context.Context, name string) error {
	var seen []string
	for {
		select {
		case e, ok := <-g.mon.events:
			if e == name {
				return nil
			}
			if !ok {
				return fmt.Errorf("guest ended without event %s, after %s", name, strings.Join(seen, ", "))
			}
			seen = append(seen, e)
		case <-ctx.Done():
			return fmt.Errorf("no event %s: %w, after %s", name, ctx.Err(), strings.Join(seen, ", "))
		}
	}
}
