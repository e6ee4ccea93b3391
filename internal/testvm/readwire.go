package testvm

import (
	"errors"
	"net"

	"stackshot/internal/testvm/wire"
)

// readWire ends with QEMU, or earlier when something else than frames comes, with an
// error; then the rest must be thrown away, or QEMU would wait for us.
func readWire(conn net.Conn, onFrame func(wire.Frame)) error {
	for {
		f, err := wire.Read(conn)
		if errors.Is(err, wire.ErrGarbled) {
			return err
		}
		if err != nil { // QEMU has ended, perhaps within a frame
			return nil
		}
		if onFrame != nil {
			onFrame(f)
		}
	}
}

func discard(conn net.Conn) {
	buf := make([]byte, 4096)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}
