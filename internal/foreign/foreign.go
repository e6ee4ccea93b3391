package foreign

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"stackshot/internal/mounts"
)

// Limits of Options that set none.
const (
	DefaultLimit   = time.Second
	DefaultHelpers = 4
	DefaultMaxSize = 2 << 30
)

// Options are constant for the life of a Files.
type Options struct {
	Limit   time.Duration // for one file, callback included; 0: DefaultLimit
	Helpers int           // files read at once, hung ones included; 0: DefaultHelpers
	MaxSize int64         // bytes of a file; 0: DefaultMaxSize
	Remote  bool          // read files of FUSE and of other machines too (--remote-files)
	Refuse  error         // why no file is read at all; nil: files are read

	// Command, if set, starts a process that calls Serve; such processes open and read
	// the files for the helpers. A thread that hangs in a file system cannot be killed,
	// and keeps its process from ending; but a command should end. If no process can be
	// started, the helpers read files of local file systems themselves.
	Command []string
}

func (o Options) withDefaults() Options {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	o.Helpers = cmp.Or(o.Helpers, DefaultHelpers)
	o.MaxSize = cmp.Or(o.MaxSize, DefaultMaxSize)
	return o
}

// Why a file is not read. A *fs.PathError that names the file wraps them, as it does
// errors of the system. A file that does not answer in time gives *procfs.TimeoutError, too
// many hanging readers give procfs.ErrExhausted, a call after Close procfs.ErrClosed.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrSymlink    = errors.New("a symbolic link")
	ErrRemote     = errors.New("on a file system that may hang")
	ErrTooLarge   = errors.New("too large")
	ErrOwner      = errors.New("owned by another user")
	ErrOther      = errors.New("not the file that was meant")
	ErrGone       = errors.New("the process that reads files has ended")
	ErrNoReader   = errors.New("no process to read it, and its file system may hang")
)

// remoteError names the file system: its kind and, if known, where it is mounted.
func remoteError(kind string) error { return fmt.Errorf("%w: %s", ErrRemote, kind) }

// Where says which file to read, and which conditions the file must meet.
type Where struct {
	Path string

	// Root, if set, is the directory that Path starts from, as after chroot(2):
	// neither ".." nor a link leads out of it. It is /proc/PID/root for a path as PID
	// sees it.
	Root string

	// Device is the file system that the file is on, as /proc/PID/maps has it; zero:
	// not known.
	Device mounts.Device

	// Link: Path is exe or an entry of map_files in /proc/PID. Such a link leads to the
	// file itself, whatever mounts are on the path to its name.
	Link bool

	NoFollow bool    // Path itself may not be a symbolic link
	Owner    *uint32 // uid that must own the file; nil: anyone
	MaxSize  int64   // bytes; 0: that of the Options

	// Check, if set, is called on the helper before the first byte is read. An error
	// refuses the file (ErrOther, for example). Check must not share with the caller
	// what the caller goes on to change.
	Check func(Stat) error
}

// String is the path for messages.
func (w Where) String() string { return w.Root + w.Path }

// Stat is what fstat says of a file. Two equal ones are of the same file, which has not
// changed in between.
type Stat struct {
	DevMajor, DevMinor uint32
	Inode              uint64
	Size               int64 // bytes
	Mtime, Ctime       int64 // ns since the epoch
	UID                uint32
}

// at names the file in an error of its own.
func at(op string, w Where, err error) error {
	return &fs.PathError{Op: op, Path: w.String(), Err: err}
}
