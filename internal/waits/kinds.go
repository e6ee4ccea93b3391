package waits

// The kinds. Locks of the kernel, locks of user memory, other threads, and then everything
// that the names on the kernel stack tell (table.go).
const (
	Mutex      Kind = "mutex"
	Semaphore  Kind = "semaphore"
	RWSem      Kind = "rwsem"
	RWSemRead  Kind = "rwsem_read"
	RWSemWrite Kind = "rwsem_write"
	RTMutex    Kind = "rt_mutex"

	FilePosition Kind = "file_position" // the mutex of an open file that a read, a write or a seek holds

	UserMutex     Kind = "user_mutex"
	UserRWLock    Kind = "user_rwlock"
	UserPIMutex   Kind = "user_pi_mutex"
	UserJoin      Kind = "user_join"
	UserCondvar   Kind = "user_condvar"
	UserSemaphore Kind = "user_semaphore"
	UserBarrier   Kind = "user_barrier"
	GoRuntime     Kind = "go_runtime"
	UserOnce      Kind = "user_once"    // pthread_once, Rust's Once
	StaticGuard   Kind = "static_guard" // of a static of a C++ function, which another thread initializes
	RustLock      Kind = "rust_lock"
	ParkingLot    Kind = "parking_lot"  // a lock of Rust's parking_lot
	JavaMonitor   Kind = "java_monitor" // to enter one
	JavaNotify    Kind = "java_notify"  // Object.wait
	UserPark      Kind = "user_park"    // a thread that parked itself
	Futex         Kind = "futex"        // none of these

	ChildEnd  Kind = "child"
	Threads   Kind = "threads"       // an execve, or a core dump that begins
	Workers   Kind = "io_workers"    // the end of a thread that has an io_uring
	CoreDump  Kind = "core_dump"     // that another thread of the process takes
	Namespace Kind = "pid_namespace" // the end of its first process
	Vfork     Kind = "vfork"
	Stopped   Kind = "stopped" // by a signal
	Traced    Kind = "traced"  // by a tracer
	Frozen    Kind = "frozen"
	CPU       Kind = "cpu" // runnable, and waits for one

	Timer      Kind = "timer"
	Signal     Kind = "signal"
	PageFault  Kind = "page_fault"
	Userfault  Kind = "userfault"
	PageLock   Kind = "page_lock"
	Writeback  Kind = "writeback"
	BlockIO    Kind = "block_io"
	FileSystem Kind = "file_system" // a journal, a log
	FSFreeze   Kind = "fs_freeze"   // a file system that is frozen, or being frozen
	PercpuSem  Kind = "percpu_rwsem"
	NFS        Kind = "nfs"
	FUSE       Kind = "fuse"
	Memory     Kind = "memory" // reclaim, compaction
	RCU        Kind = "rcu"
	Netlink    Kind = "netlink"
	IOUring    Kind = "io_uring"
	Poll       Kind = "poll" // poll, select, epoll
	Pipe       Kind = "pipe"
	Socket     Kind = "socket"
	Terminal   Kind = "terminal"
	FileLock   Kind = "file_lock"
	Descriptor Kind = "descriptor" // another file: inotify, eventfd, timerfd, ...
	IPC        Kind = "ipc"        // System V and POSIX message queues and semaphores
	VirtualCPU Kind = "vcpu"       // a guest's CPU that has nothing to do
	Completion Kind = "completion" // of something inside the kernel that has no kind of its own
	Workqueue  Kind = "workqueue"  // until work is done
	AtRest     Kind = "at_rest"    // a kernel thread that waits for work
	Other      Kind = "other"      // nothing above
)
