package panicregion

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Description is what stands before and after the tasks in a file and does not change while the
// machine runs. Whoever reads a dump has no /proc of the machine: what is not here is not known.
type Description struct {
	Tool                             string // who wrote it
	Hostname, Release, Version, Arch string // uname(2)
	BootID, Cmdline                  string // as /proc has them; Cmdline "" with Redact
	KernelBuild                      []byte // GNU build-id of vmlinux
	PidNS                            uint32 // inode of the pid namespace whose numbers the records have
	FirstNS                          bool   // it is the machine's first one
	StackDepth                       int    // most frames of a kernel stack
	PageSize                         int    // of the machine, bytes
	BootEpochNs                      uint64 // CLOCK_REALTIME - CLOCK_BOOTTIME
	Modules                          []Module
	CPUs                             []CPU    // the online ones
	WaitSources, FileSources         uint32   // kcdata.WaitHas*, kcdata.FilesHas*; 0: not recorded
	Redact                           bool     // neither user stacks nor mappings are recorded
	UserStacks                       bool     // the user side of each thread is recorded
	Hooks                            []string // functions of the kernel that are hooked
	SelfTgid                         uint32   // the process that wrote it
	KallsymsWhy                      string   // why Symbols is empty
	SymbolBytes                      int      // of Symbols; by Pack
	Symbols                          string   `json:"-"` // text symbols of /proc/kallsyms, in its form
}

// Module is one loaded kernel module.
type Module struct {
	Name    string
	Addr    uint64 // of its first section; 0: not known
	Size    uint64 // bytes
	BuildID []byte // nil: not known
}

// CPU is one CPU.
type CPU struct {
	CPU     uint32
	Kind    uint32 // kcdata.CPUKind*
	Cluster uint32
}

// MaxDescription bounds a description that is not packed, in bytes: 250,000 symbols take half of it.
const MaxDescription = 24 << 20

// Pack gives the bytes of a section: a zstd frame of the length of the JSON (u32), the JSON and
// the symbols.
func (d *Description) Pack() ([]byte, error) {
	d.SymbolBytes = len(d.Symbols)
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if n := 4 + len(text) + len(d.Symbols); n > MaxDescription {
		return nil, fmt.Errorf("description of the machine: %d bytes, the most are %d", n, MaxDescription)
	}
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		return nil, err
	}
	for _, b := range [][]byte{binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text} {
		if _, err := z.Write(b); err != nil {
			return nil, err
		}
	}
	if _, err := io.WriteString(z, d.Symbols); err != nil {
		return nil, err
	}
	err = z.Close() // the last bytes come now
	return out.Bytes(), err
}

// Unpack reads a section's bytes. It takes no more memory than MaxDescription twice over, whatever they are. An
// error is of kind ErrDamaged.
func Unpack(b []byte) (*Description, error) {
	d, err := unpack(b)
	if err != nil {
		return nil, fmt.Errorf("description of the machine: %w: %w", ErrDamaged, err)
	}
	return d, nil
}

func unpack(b []byte) (*Description, error) {
	z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	from := io.LimitReader(z, MaxDescription+1)
	var size uint32
	if err := binary.Read(from, binary.LittleEndian, &size); err != nil {
		return nil, err
	}
	if size > maxJSON {
		return nil, fmt.Errorf("%d bytes of JSON", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte("{")); n > maxObjects {
		return nil, fmt.Errorf("%d modules and CPUs", n)
	}
	d := new(Description)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, err
	}
	if d.SymbolBytes < 0 || d.SymbolBytes > MaxDescription-4-int(size) {
		return nil, fmt.Errorf("%d bytes of symbols", d.SymbolBytes)
	}
	var symbols strings.Builder
	symbols.Grow(d.SymbolBytes)
	if _, err := io.CopyN(&symbols, from, int64(d.SymbolBytes)); err != nil {
		return nil, fmt.Errorf("symbols: %w", err)
	}
	switch _, err := io.ReadFull(from, make([]byte, 1)); {
	case err == nil:
		return nil, fmt.Errorf("more than %d bytes of symbols", d.SymbolBytes)
	case err != io.EOF:
		return nil, fmt.Errorf("behind the symbols: %w", err)
	}
	d.Symbols = symbols.String()
	return d, nil
}

// maxJSON bounds what is not symbols: 1,000 modules and 4,096 CPUs take a quarter of it.
const maxJSON = 2 << 20

// maxObjects bounds modules and CPUs together: without a word in it one takes three bytes of JSON, and 80 of memory.
const maxObjects = 1 << 16
