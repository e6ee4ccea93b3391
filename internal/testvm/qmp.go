package testvm

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// monitor speaks QEMU's machine protocol (QMP): one JSON object a line. Commands
// are answered in order; events come in between.
type monitor struct {
	conn net.Conn

	// mu: one command at a time, from its writing to its answer.
	mu      sync.Mutex
	answers chan answer

	events chan string // names of events; written by read alone, full ones are dropped
}

// answer is one line of QEMU.
type answer struct {
	Return json.RawMessage
	Event  string
	Error  *struct{ Class, Desc string }
	QMP    json.RawMessage
}

// qmpWait bounds a command, dumpWait one that writes the guest's memory.
const (
	qmpWait  = 60 * time.Second
	dumpWait = 10 * time.Minute
)

// newMonitor shakes hands over a connection that QEMU holds the other end of.
func newMonitor(conn net.Conn) *monitor {
	m := &monitor{conn: conn, answers: make(chan answer, 1), events: make(chan string, 64)}
	go m.read()
	return m
}

// read ends, and closes the channels, when QEMU does.
func (m *monitor) read() {
	defer close(m.events)
	defer close(m.answers)
	d := json.NewDecoder(m.conn)
	for {
		var a answer
		if err := d.Decode(&a); err != nil {
			if err != io.EOF {
				m.conn.Close()
			}
			return
		}
		switch {
		case a.QMP != nil:
		case a.Event != "":
			select {
			case m.events <- a.Event:
			default:
			}
		default:
			m.answers <- a
		}
	}
}

// command sends one and waits for its answer.
func (m *monitor) command(name string, args map[string]any) error {
	_, err := m.ask(name, args, qmpWait)
	return err
}

// ask sends a command, waits that long for its answer and gives what it returned.
func (m *monitor) ask(name string, args map[string]any, wait time.Duration) (json.RawMessage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line, err := json.Marshal(struct {
		Execute   string         `json:"execute"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}{name, args})
	if err != nil {
		return nil, err
	}
	if _, err := m.conn.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("qmp %s: %w", name, err)
	}
	select {
	case a, ok := <-m.answers:
		if !ok {
			return nil, fmt.Errorf("qmp %s: %w", name, io.ErrUnexpectedEOF)
		}
		if a.Error != nil {
			return nil, fmt.Errorf("qmp %s: %s: %s", name, a.Error.Class, a.Error.Desc)
		}
		return a.Return, nil
	case <-time.After(wait):
		// An answer that still came would be taken for the next command's.
		m.conn.Close()
		return nil, fmt.Errorf("qmp %s: no answer within %v", name, wait)
	}
}
