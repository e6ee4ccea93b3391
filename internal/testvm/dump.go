package testvm

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// DumpFormat is a format of dump-guest-memory, by QEMU's name (qapi/dump.json).
type DumpFormat string

// Formats of QEMU 7.2; LZO and Snappy only if it was built with them. The compressed
// ones are those of kdump and makedumpfile, each page by itself, no page left out but
// those of zeros.
const (
	DumpELF    DumpFormat = "elf"
	DumpZlib   DumpFormat = "kdump-zlib"
	DumpLZO    DumpFormat = "kdump-lzo"
	DumpSnappy DumpFormat = "kdump-snappy"
)

// DumpMemory writes the guest's memory as an ELF core file.
func (g *Guest) DumpMemory(file string) error { return g.dump(file, DumpELF) }

// DumpMemoryAs writes the guest's memory in a format. The CPUs stand meanwhile. QEMU
// writes kdump's formats flattened only (DumpFlattened); here they are put in order, as
// makedumpfile -R does. For a VMCOREINFO note in the dump the guest needs module
// qemu_fw_cfg and the device vmcoreinfo (Config.VMCoreInfo).
func (g *Guest) DumpMemoryAs(file string, format DumpFormat) error {
	if format == DumpELF {
		return g.dump(file, format)
	}
	flat := file + ".flat"
	defer os.Remove(flat)
	if err := g.dump(flat, format); err != nil {
		return err
	}
	return Unflatten(flat, file)
}

// DumpFlattened writes the guest's memory in one of kdump's formats, flattened: as a
// list of pieces of the file, for a target that cannot seek.
func (g *Guest) DumpFlattened(file string, format DumpFormat) error {
	if format == DumpELF {
		return errors.New("QEMU does not flatten ELF dumps")
	}
	return g.dump(file, format)
}

func (g *Guest) dump(file string, format DumpFormat) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	_, err = g.mon.ask("dump-guest-memory", map[string]any{"paging": false, "protocol": "file:" + file, "format": format}, dumpWait)
	return err
}

// A flattened file (makedumpfile.h of makedumpfile, dump.h of QEMU): a header of 4,096
// bytes with magic, type 1 and version 1, then pieces, each behind its offset and size,
// all of them 64 bits and big-endian. Both are -1 at the end.
const (
	flatMagic  = "makedumpfile\x00\x00\x00\x00"
	flatHeader = 4096
	flatPiece  = 16 << 20 // more in one piece is no piece
)

// Unflatten puts the pieces of a flattened dump where they belong, in a new file.
func Unflatten(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			err = fmt.Errorf("%s: %w", from, err)
		}
	}()
	return unflatten(bufio.NewReaderSize(in, 1<<20), out)
}

func unflatten(in io.Reader, out io.WriterAt) error {
	head := make([]byte, flatHeader)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	if !bytes.HasPrefix(head, []byte(flatMagic)) {
		return fmt.Errorf("not a flattened dump: begins with %q", head[:len(flatMagic)])
	}
	buf := make([]byte, flatPiece)
	for {
		var piece [2]int64
		if err := binary.Read(in, binary.BigEndian, &piece); err != nil {
			return fmt.Errorf("no end: %w", err)
		}
		at, size := piece[0], piece[1]
		if at == -1 && size == -1 {
			return nil
		}
		if at < 0 || size < 0 || size > flatPiece {
			return fmt.Errorf("piece of %d bytes at %d", size, at)
		}
		if _, err := io.ReadFull(in, buf[:size]); err != nil {
			return err
		}
		if _, err := out.WriteAt(buf[:size], at); err != nil {
			return err
		}
	}
}
