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
	Remote  bool          // files of FUSE and of other machines too (--remote-files)
	Refuse  error         // why no file is read at all; nil: they are

	// Command, if set, starts a process that calls Serve: each helper has
	// files opened and read by one. A thread that hangs in a file system
	// outlives even SIGKILL, and with it the process whose thread it is;
	// whoever runs a command wants it to end. Where none can be started,
	// helpers are threads, for files on local file systems.
	Command []string
}

func (o Options) withDefaults() Options {
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	o.Helpers = cmp.Or(o.Helpers, DefaultHelpers)
	o.MaxSize = cmp.Or(o.MaxSize, DefaultMaxSize)
	return o
}

// Why a file is not read. They come in a *fs.PathError that names the file, as
// errors of the system do. A time limit gives *procfs.TimeoutError, too many
// hanging files procfs.ErrExhausted, after Close procfs.ErrClosed.
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

// RemoteError says which file system ErrRemote is about: its kind and, where that is
// known, where it is mounted.
type RemoteError struct{ Kind string }

func (e *RemoteError) Error() string { return fmt.Sprintf("%v: %s", ErrRemote, e.Kind) }

// Unwrap makes errors.Is(err, ErrRemote) hold.
func (e *RemoteError) Unwrap() error { return ErrRemote }

// Where says which file to read, and what it has to be.
type Where struct {
	Path string

	// Root, if set, is what Path starts from, as after chroot(2): neither ".."
	// nor a link leads out of it. /proc/PID/root for a path as PID sees it.
	Root string

	// Device is the file system that the file is known to be on, as /proc/PID/maps
	// says it; zero: it is not known.
	Device mounts.Device

	// Link says that Path is one of the links of /proc/PID, exe or map_files, that
	// lead to a file by themselves, whatever lies on the way to its name.
	Link bool

	NoFollow bool    // Path itself may not be a symbolic link
	Owner    *uint32 // uid that has to own it; nil: anyone
	MaxSize  int64   // bytes; 0: the Options'

	// Check, if set, is called on the helper before the first byte is read.
	// It may refuse the file, with ErrOther for one. It shares nothing with
	// the caller that the caller goes on to change.
	Check func(Stat) error
}

// String is the path for messages.
func (w Where) String() string { return w.Root + w.Path }

// Stat is what fstat says of a file. Two that are equal are of one file that
// has not changed in between.
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
