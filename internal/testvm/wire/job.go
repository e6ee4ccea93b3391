package wire

// Where things lie in a guest.
const (
	JobFile = "/job.json"
	RepoDir = "/stackshot" // a copy of the repository's files
	OutDir  = "/out"       // files found here afterwards go to the host
	LabDir  = "/lib/lab"   // programs of package userlab

	// Names of virtio ports: of the wire, where it is none of the serial lines, and of
	// the capture kernel's.
	PortName    = "stackshot.wire"
	CapturePort = "stackshot.capture"

	ModulesDir = "/modules" // of Setup.Modules

	// The capture kernel and its initramfs (Setup.Capture).
	CaptureKernel = "/capture/vmlinuz"
	CaptureInitrd = "/capture/initrd"
)

// Job is what the first process of a guest is to do, written by the host into
// the initramfs as JSON.
type Job struct {
	Args  []string // program and arguments
	Dir   string   // working directory
	Env   []string // NAME=value, all of the program's environment
	Wire  string   // device of the wire, or the name of a virtio port
	Setup Setup
}

// Setup is what the first process changes before it runs the program.
type Setup struct {
	Offline []int             // CPUs to take offline
	Sysctl  map[string]string // path under /proc/sys: value
	// NoFIFO takes from the program what SCHED_FIFO needs: CAP_SYS_NICE and
	// RLIMIT_RTPRIO, as a container's manager does.
	NoFIFO  bool
	Modules []Module // loaded in this order
	// Capture is the command line of the capture kernel, which is loaded to be
	// started by a panic; empty: there is none.
	Capture string
}

// Module is one of the kernel's, in the initramfs.
type Module struct {
	File       string
	Parameters string // name=value, separated by blanks
}
