package waits

// facts are what is known of a kind itself.
type facts struct {
	words string // "waits for" goes before them
	rest  bool   // a thread may be in it for hours, and nothing is wrong
}

// kinds has every kind. A wait that ends by what a person, another machine, the clock or work
// yet to come does is rest; so is one whose partner the file does not know and that programs
// use to be idle (a condition variable, a pipe).
var kinds = map[Kind]facts{
	Mutex:      {words: "a mutex of the kernel"},
	Semaphore:  {words: "a semaphore of the kernel"},
	RWSem:      {words: "an rwsem of the kernel"},
	RWSemRead:  {words: "an rwsem of the kernel, to read"},
	RWSemWrite: {words: "an rwsem of the kernel, to write"},
	RTMutex:    {words: "an rt_mutex of the kernel"},
	PercpuSem:  {words: "a per-CPU rwsem of the kernel"},

	UserMutex:     {words: "a mutex"},
	UserRWLock:    {words: "a read-write lock"},
	UserPIMutex:   {words: "a priority-inheritance mutex"},
	UserJoin:      {words: "the end of a thread"},
	UserCondvar:   {"a condition variable", true},
	UserSemaphore: {"a semaphore", true},
	UserBarrier:   {"a barrier", true},
	GoRuntime:     {"work, in the Go runtime", true},
	RustLock:      {words: "a lock of Rust's standard library"},
	JavaMonitor:   {"a Java monitor", true},
	UserPark:      {"another thread to unpark it", true},
	Futex:         {words: "a futex"},

	ChildEnd: {words: "a child to end or stop"},
	Vfork:    {words: "its vfork child to execute a program or end"},
	Stopped:  {words: "a signal to go on (it is stopped)"},
	Traced:   {words: "its tracer"},
	Frozen:   {words: "its freezer to thaw it"},
	CPU:      {words: "a CPU"},

	Timer:      {"a timer", true},
	Signal:     {"a signal", true},
	PageFault:  {words: "a page that it touched"},
	Userfault:  {words: "a page that a userfaultfd has to serve"},
	PageLock:   {words: "a locked page"},
	Writeback:  {words: "pages to be written to their disk"},
	BlockIO:    {words: "a block device"},
	FileSystem: {words: "its file system"},
	FSFreeze:   {words: "a frozen file system to be thawed"},
	NFS:        {words: "an NFS server"},
	FUSE:       {words: "a FUSE server"},
	Memory:     {words: "free memory"},
	RCU:        {words: "an RCU grace period"},
	Netlink:    {"a netlink message", true},
	IOUring:    {"an io_uring completion", true},
	Poll:       {"one of several descriptors", true},
	Pipe:       {"the other end of a pipe", true},
	Socket:     {"the other end of a socket", true},
	Terminal:   {"a terminal", true},
	FileLock:   {words: "a file lock"},
	Descriptor: {"an event of a descriptor", true},
	IPC:        {"a message or semaphore (IPC)", true},
	VirtualCPU: {"its guest", true},
	Completion: {words: "something that the kernel does"},
	Workqueue:  {words: "work of a kernel worker to be done"},
	AtRest:     {"work (at rest)", true},
	Other:      {words: "something that its stack does not tell"},
}

// Words are k for people, after "waits for".
func (k Kind) Words() string {
	if f, ok := kinds[k]; ok {
		return f.words
	}
	return kinds[Other].words
}

// Rest reports whether threads wait in this way when they have nothing to do. Such a wait
// needs nobody who could be at fault.
func (k Kind) Rest() bool { return kinds[k].rest }
