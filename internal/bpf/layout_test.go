package bpf

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// What the C says of a layout is read from the committed objects' own type
// information, for both architectures, whichever runs the test.
var objects = map[string]string{
	"amd64": "object_x86_bpfel.o", "arm64": "object_arm64_bpfel.o",
	"amd64, tests": "bpftest/pull_x86_bpfel.o", "arm64, tests": "bpftest/pull_arm64_bpfel.o",
}

// records pairs each C struct that is a payload with its type id in kcdata,
// whose spec table is what a file's readers are told.
var records = map[string]kcdata.Type{
	"thread_snapshot":             kcdata.TypeThreadSnapshot,
	"cpu_times":                   kcdata.TypeCPUTimes,
	"task_snapshot":               kcdata.TypeTaskSnapshot,
	"transitioning_task_snapshot": kcdata.TypeTransitioningSnapshot,
	"linux_task":                  kcdata.TypeLinuxTask,
	"linux_task_memory":           kcdata.TypeLinuxTaskMemory,
	"linux_task_ns":               kcdata.TypeLinuxTaskNS,
	"linux_task_exe":              kcdata.TypeLinuxTaskExe,
	"linux_mapping":               kcdata.TypeLinuxMapping,
	"linux_map_walk":              kcdata.TypeLinuxMapWalk,
	"linux_thread":                kcdata.TypeLinuxThread,
	"linux_syscall":               kcdata.TypeLinuxSyscall,
	"linux_thread_io":             kcdata.TypeLinuxThreadIO,
	"linux_delays":                kcdata.TypeLinuxDelays,
	"linux_signals":               kcdata.TypeLinuxSignals,
	"linux_thread_ns":             kcdata.TypeLinuxThreadNS,
	"linux_user_walk":             kcdata.TypeLinuxUserWalk,
	"linux_user_link":             kcdata.TypeLinuxUserChain,
	"linux_wait":                  kcdata.TypeLinuxWait,
	"linux_futex":                 kcdata.TypeLinuxFutex,
	"linux_file":                  kcdata.TypeLinuxFile,
	"linux_socket":                kcdata.TypeLinuxSocket,
	"latency_thread":              kcdata.TypeLatencyInfoThread,
}

func typesOf(t *testing.T, object string) *btf.Spec {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatal(err)
	}
	return spec.Types
}

func structOf(t *testing.T, types *btf.Spec, name string) *btf.Struct {
	t.Helper()
	var s *btf.Struct
	if err := types.TypeByName(name, &s); err != nil {
		t.Fatalf("struct %s is not in the object's type information (kcdata.h, all_records): %v", name, err)
	}
	return s
}

// member is one member, by what matters on the wire.
type member struct {
	name   string
	offset int
	elem   kcdata.ElemType
	count  int // 0: a scalar
}

func membersOf(t *testing.T, s *btf.Struct) []member {
	t.Helper()
	var out []member
	for _, m := range s.Members {
		f := member{name: m.Name, offset: int(m.Offset.Bytes())}
		typ := btf.UnderlyingType(m.Type)
		if a, ok := typ.(*btf.Array); ok {
			f.count = int(a.Nelems)
			typ = btf.UnderlyingType(a.Type)
		}
		i, ok := typ.(*btf.Int)
		if !ok {
			t.Fatalf("struct %s: member %s is a %v", s.Name, m.Name, typ)
		}
		f.elem = elemOf(i)
		out = append(out, f)
	}
	return out
}

func elemOf(i *btf.Int) kcdata.ElemType {
	if i.Name == "char" {
		return kcdata.ElemChar
	}
	unsigned := map[uint32]kcdata.ElemType{
		1: kcdata.ElemUint8, 2: kcdata.ElemUint16, 4: kcdata.ElemUint32, 8: kcdata.ElemUint64,
	}[i.Size]
	if i.Encoding == btf.Signed {
		return unsigned - 1 // on the wire each signed type stands before its unsigned one
	}
	return unsigned
}

func TestRecordLayout(t *testing.T) {
	testneed.Live(t)
	for arch, object := range objects {
		types := typesOf(t, object)
		for name, id := range records {
			t.Run(arch+"/"+name, func(t *testing.T) {
				spec, ok := kcdata.Lookup(id)
				if !ok {
					t.Fatalf("type %#x has no spec", uint32(id))
				}
				var want []member
				for _, f := range spec.Fields {
					want = append(want, member{f.Name, f.Offset, f.Elem, f.Count})
				}
				s := structOf(t, types, name)
				got := membersOf(t, s)
				for i := range got { // the format cuts names that are longer
					got[i].name = got[i].name[:min(len(got[i].name), 31)]
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("C    %+v\nspec %+v", got, want)
				}
				if int(s.Size) != spec.Size() {
					t.Errorf("sizeof %d, spec %d", s.Size, spec.Size())
				}
			})
		}
	}
}

// A record that C writes and this test does not know would go unchecked.
func TestRecordLayoutIsComplete(t *testing.T) {
	testneed.Live(t)
	for arch, object := range objects {
		all := structOf(t, typesOf(t, object), "all_records")
		for _, m := range all.Members {
			s, ok := m.Type.(*btf.Struct)
			if !ok || m.Name == "header" || m.Name == "container" {
				continue
			}
			if records[s.Name] == 0 {
				t.Errorf("%s: struct %s has no type id in this test", arch, s.Name)
			}
		}
	}
	compared := append(slices.Collect(maps.Values(records)), kcdata.TypeKernStackLR64, kcdata.TypeLinuxRegisters) // u64 alone
	for name, v := range constants {
		id := kcdata.Type(v)
		if spec, ok := kcdata.Lookup(id); strings.HasPrefix(name, "KC_") && ok && len(spec.Fields) > 0 && !slices.Contains(compared, id) {
			t.Errorf("C writes %s, and no struct of all_records (kcdata.h) is compared with it", name)
		}
	}
}

func TestWireHeaderLayout(t *testing.T) {
	testneed.Live(t)
	for arch, object := range objects {
		types := typesOf(t, object)
		want := []member{{"type", 0, kcdata.ElemUint32, 0}, {"size", 4, kcdata.ElemUint32, 0}, {"flags", 8, kcdata.ElemUint64, 0}}
		if got := membersOf(t, structOf(t, types, "kc_header")); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: struct kc_header %+v, want %+v", arch, got, want)
		}
		c := structOf(t, types, "kc_container")
		if c.Size != 32 || c.Members[1].Name != "type" || c.Members[1].Offset.Bytes() != 16 {
			t.Errorf("%s: struct kc_container of %d bytes, %v", arch, c.Size, c.Members)
		}
	}
}

// constants are what both sides name, C's first.
var constants = map[string]uint64{
	"KC_CONTAINER_BEGIN":     uint64(kcdata.TypeContainerBegin),
	"KC_LX_REGISTERS":        uint64(kcdata.TypeLinuxRegisters),
	"KC_LATENCY_THREAD":      uint64(kcdata.TypeLatencyInfoThread),
	"KC_CONTAINER_END":       uint64(kcdata.TypeContainerEnd),
	"KC_ARRAY_PAD0":          uint64(kcdata.TypeArrayPad0),
	"KC_TASK":                uint64(kcdata.TypeTask),
	"KC_THREAD":              uint64(kcdata.TypeThread),
	"KC_TASK_SNAPSHOT":       uint64(kcdata.TypeTaskSnapshot),
	"KC_THREAD_SNAPSHOT":     uint64(kcdata.TypeThreadSnapshot),
	"KC_THREAD_NAME":         uint64(kcdata.TypeThreadName),
	"KC_KERN_STACKLR64":      uint64(kcdata.TypeKernStackLR64),
	"KC_CPU_TIMES":           uint64(kcdata.TypeCPUTimes),
	"KC_TRANS_TASK_SNAPSHOT": uint64(kcdata.TypeTransitioningSnapshot),
	"KC_TRANS_TASK":          uint64(kcdata.TypeTransitioningTask),
	"KC_LX_TASK":             uint64(kcdata.TypeLinuxTask),
	"KC_LX_TASK_MEMORY":      uint64(kcdata.TypeLinuxTaskMemory),
	"KC_LX_TASK_NS":          uint64(kcdata.TypeLinuxTaskNS),
	"KC_LX_TASK_EXE":         uint64(kcdata.TypeLinuxTaskExe),
	"KC_LX_MAPPING":          uint64(kcdata.TypeLinuxMapping),
	"KC_LX_MAP_NAME":         uint64(kcdata.TypeLinuxMapName),
	"KC_LX_MAP_WALK":         uint64(kcdata.TypeLinuxMapWalk),
	"KC_LX_CMDLINE_SEEN":     uint64(kcdata.TypeLinuxCmdlineSeen),
	"KC_LX_THREAD":           uint64(kcdata.TypeLinuxThread),
	"KC_LX_SYSCALL":          uint64(kcdata.TypeLinuxSyscall),
	"KC_LX_THREAD_IO":        uint64(kcdata.TypeLinuxThreadIO),
	"KC_LX_DELAYS":           uint64(kcdata.TypeLinuxDelays),
	"KC_LX_SIGNALS":          uint64(kcdata.TypeLinuxSignals),
	"KC_LX_THREAD_NS":        uint64(kcdata.TypeLinuxThreadNS),
	"KC_LX_USER_WALK":        uint64(kcdata.TypeLinuxUserWalk),
	"KC_LX_USER_CHAIN":       uint64(kcdata.TypeLinuxUserChain),
	"KC_LX_USER_BYTES":       uint64(kcdata.TypeLinuxUserBytes),
	"KC_LX_WAIT":             uint64(kcdata.TypeLinuxWait),
	"KC_LX_FUTEX":            uint64(kcdata.TypeLinuxFutex),
	"KC_LX_FILE":             uint64(kcdata.TypeLinuxFile),
	"KC_LX_SOCKET":           uint64(kcdata.TypeLinuxSocket),

	"TASK_HAS_IDS":          kcdata.TaskHasIDs,
	"TASK_HAS_TIMES":        kcdata.TaskHasTimes,
	"TASK_HAS_SIGNAL":       kcdata.TaskHasSignal,
	"TASK_HAS_OOM":          kcdata.TaskHasOOM,
	"TASK_HAS_CGROUP":       kcdata.TaskHasCgroup,
	"TASK_HAS_GROUP_IO":     kcdata.TaskHasGroupIO,
	"TASK_HAS_FAULTS":       kcdata.TaskHasFaults,
	"TASK_HAS_THREAD_COUNT": kcdata.TaskHasThreadCount,
	"TASK_IS_KERNEL":        kcdata.TaskIsKernel,
	"TASK_IN_EXEC":          kcdata.TaskInExec,
	"TASK_CORE_DUMPING":     kcdata.TaskCoreDumping,
	"TASK_IS_SELF":          kcdata.TaskIsSelf,
	"TASK_HAS_MONOTONIC":    kcdata.TaskHasMonotonic,

	"MAPPING_DELETED":   kcdata.MappingDeleted,
	"MAPPING_VDSO":      kcdata.MappingVDSO,
	"MAPPING_ANON":      kcdata.MappingAnon,
	"MAPPING_IN_WINDOW": kcdata.MappingInWindow,
	"MAPPING_UNREAD":    kcdata.MappingUnread,
	"MAP_WALK_WRITER":   kcdata.MapWalkWriter,
	"MAP_WALK_WAITERS":  kcdata.MapWalkWaiters,
	"MAP_WALK_ASKED":    kcdata.MapWalkAsked,
	"MAP_WALK_WHOLE":    kcdata.MapWalkWhole,

	"THREAD_HAS_TIMES":      kcdata.ThreadHasTimes,
	"THREAD_HAS_RUNTIME":    kcdata.ThreadHasRuntime,
	"THREAD_HAS_SCHED_INFO": kcdata.ThreadHasSchedInfo,
	"THREAD_HAS_SWITCHES":   kcdata.ThreadHasSwitches,
	"THREAD_HAS_FAULTS":     kcdata.ThreadHasFaults,
	"THREAD_HAS_PRIO":       kcdata.ThreadHasPrio,
	"THREAD_HAS_START":      kcdata.ThreadHasStart,
	"THREAD_HAS_FS_BASE":    kcdata.ThreadHasFsBase,
	"THREAD_HAS_STACK":      kcdata.ThreadHasStack,
	"THREAD_HAS_EXIT_CODE":  kcdata.ThreadHasExitCode,
	"THREAD_HAS_ONCPU":      kcdata.ThreadHasOnCPU,
	"THREAD_TRUNCATED":      kcdata.ThreadTruncated,
	"THREAD_NEVER_RAN":      kcdata.ThreadNeverRan,
	"THREAD_USER_MODE":      kcdata.ThreadUserMode,
	"THREAD_IS_IDLE":        kcdata.ThreadIsIdle,
	"THREAD_IS_SELF":        kcdata.ThreadIsSelf,
	"THREAD_HAS_MONOTONIC":  kcdata.ThreadHasMonotonic,
	"THREAD_DISPLACED":      kcdata.ThreadDisplaced,
	"THREAD_COMPAT_CALL":    kcdata.ThreadCompatCall,

	"USER_WALKED": kcdata.UserWalked, "USER_EXACT": kcdata.UserExact, "USER_TRUNCATED": kcdata.UserTruncated,
	"USER_PAGED_OUT": kcdata.UserPagedOut, "USER_REFUSED": kcdata.UserRefused, "USER_OUTSIDE": kcdata.UserOutside,
	"USER_COMPAT": kcdata.UserCompat, "USER_NO_MEMORY": kcdata.UserNoMemory, "USER_NO_PAGE": kcdata.UserNoPage,

	"WAIT_FIELD": kcdata.WaitField, "WAIT_SCAN": kcdata.WaitScan, "WAIT_PI": kcdata.WaitPI, "WAIT_OWNED": kcdata.WaitOwned,
	"WAIT_READERS": kcdata.WaitReaders, "WAIT_LAST_HOLDER": kcdata.WaitLastHolder, "WAIT_FREE": kcdata.WaitFree,
	"WAIT_BAD_OWNER": kcdata.WaitBadOwner, "WAIT_IO": kcdata.WaitIO, "WAIT_TRACED": kcdata.WaitTraced, "WAIT_VFORK": kcdata.WaitVfork,
	"WAIT_FROZEN": kcdata.WaitFrozen, "WAIT_SCANNED": kcdata.WaitScanned, "WAIT_FEW_FUTEXES": kcdata.WaitFewFutexes, "WAIT_FEW_FILES": kcdata.WaitFewFiles,
	"LOCK_MUTEX": kcdata.LockMutex, "LOCK_SEMAPHORE": kcdata.LockSemaphore, "LOCK_RWSEM_READ": kcdata.LockRWSemRead,
	"LOCK_RWSEM_WRITE": kcdata.LockRWSemWrite, "LOCK_RT_MUTEX": kcdata.LockRTMutex,
	"SCAN_FOUND": kcdata.ScanFound, "SCAN_NO_PATH": kcdata.ScanNoPath, "SCAN_NO_RING": kcdata.ScanNoRing,
	"SCAN_NO_LOCK": kcdata.ScanNoLock, "SCAN_TOO_LONG": kcdata.ScanTooLong, "SCAN_UNREAD": kcdata.ScanUnread,
	"FUTEX_PRIVATE": kcdata.FutexPrivate, "FUTEX_PI": kcdata.FutexPI, "FUTEX_TIMED": kcdata.FutexTimed,
	"FUTEX_ABSENT": kcdata.FutexAbsent, "FUTEX_REFUSED": kcdata.FutexRefused, "FUTEX_COMPAT": kcdata.FutexCompat, "FUTEX_WAITV": kcdata.FutexWaitv,

	"FILE_OTHER": kcdata.FileOther, "FILE_REGULAR": kcdata.FileRegular, "FILE_DIRECTORY": kcdata.FileDirectory, "FILE_BLOCK": kcdata.FileBlock,
	"FILE_CHAR": kcdata.FileChar, "FILE_PIPE": kcdata.FilePipe, "FILE_FIFO": kcdata.FileFIFO, "FILE_SOCKET": kcdata.FileSocket,
	"FILE_TERMINAL": kcdata.FileTerminal, "FILE_PT_MASTER": kcdata.FilePTMaster, "FILE_EPOLL": kcdata.FileEpoll, "FILE_EVENTFD": kcdata.FileEventfd,
	"FILE_TIMERFD": kcdata.FileTimerfd, "FILE_SIGNALFD": kcdata.FileSignalfd, "FILE_PIDFD": kcdata.FilePidfd, "FILE_INOTIFY": kcdata.FileInotify,
	"FILE_FANOTIFY": kcdata.FileFanotify, "FILE_USERFAULTFD": kcdata.FileUserfaultfd, "FILE_FUSE": kcdata.FileFUSE, "FILE_IO_URING": kcdata.FileIOUring,
	"FILE_OP_READ": kcdata.FileOpRead, "FILE_OP_WRITE": kcdata.FileOpWrite, "FILE_OP_ACCEPT": kcdata.FileOpAccept, "FILE_OP_CONNECT": kcdata.FileOpConnect,
	"FILE_OP_POSIX": kcdata.FileOpPOSIX, "FILE_OP_OFD": kcdata.FileOpOFD,
	"FILE_TO_READ": kcdata.FileToRead, "FILE_TO_WRITE": kcdata.FileToWrite, "FILE_POLLED": kcdata.FilePolled, "FILE_TIMED": kcdata.FileTimed,
	"FILE_CLOSED": kcdata.FileClosed, "FILE_UNREAD": kcdata.FileUnread, "FILE_NO_SET": kcdata.FileNoSet, "FILE_EMPTY": kcdata.FileEmpty,
	"FILE_FULL": kcdata.FileFull, "FILE_OPAQUE": kcdata.FileOpaque, "FILE_PEER_KNOWN": kcdata.FilePeerKnown,
	"SOCKET_LISTENS": kcdata.SocketListens, "SOCKET_SHUT_IN": kcdata.SocketShutIn, "SOCKET_SHUT_OUT": kcdata.SocketShutOut,
	"SOCKET_CONNECTED": kcdata.SocketConnected, "SOCKET_V4": kcdata.SocketV4, "SOCKET_PEER_CRED": kcdata.SocketPeerCred,
	"SOCKET_NAMED": kcdata.SocketNamed, "SOCKET_PEER_NAMED": kcdata.SocketPeerNamed,

	// Apple's, which kcdata has no names for (osfmk/kern/debug.h, kcdata.h).
	"SS_USER64": 0x1, "SS_KERNEL64": 0x2, "TS_TERMINATED": 0x8,
	"THS_ONCORE": 0x800, "THS_MAIN": 0x2000, "THS_TRUNCKERN": 0x4000,
	"TH_WAIT": 0x1, "TH_SUSP": 0x2, "TH_RUN": 0x4, "TH_UNINT": 0x8, "TH_TERMINATE": 0x10, "TH_IDLE": 0x80,
}

func TestConstantsOfCAndGo(t *testing.T) {
	testneed.Live(t)
	sameConstants(t, objects, "all_records", constants)
}

// sameConstants holds the enums that a structure of the objects names against Go's constants.
func sameConstants(t *testing.T, objects map[string]string, structure string, constants map[string]uint64) {
	t.Helper()
	for arch, object := range objects {
		all := structOf(t, typesOf(t, object), structure)
		seen := 0
		for _, m := range all.Members {
			e, ok := m.Type.(*btf.Enum)
			if !ok {
				continue
			}
			for _, v := range e.Values {
				seen++
				if want, ok := constants[v.Name]; !ok || v.Value != want {
					t.Errorf("%s: enum %s: %s is %#x in C, %#x in Go (known %v)", arch, e.Name, v.Name, v.Value, want, ok)
				}
			}
		}
		if seen != len(constants) {
			t.Errorf("%s: %d constants in C, %d in Go", arch, seen, len(constants))
		}
	}
}

// The sources are the same for both architectures and for the tests' objects. Only what
// they read of the kernel may differ: Go has the types of the objects that ship.
func TestAllObjectsHaveOneLayout(t *testing.T) {
	testneed.Live(t)
	shared := []string{"kc_header", "kc_container", "cpu_slot", "control", "census_entry", "cpu_sample"}
	sameLayout(t, objects, append(shared, slices.Collect(maps.Keys(records))...))
	sameLayout(t, trapObjects, []string{"stop", "trap_worker", "trap_part", "trap_piece", "trap_second", "trace_event", "trace_ring"})
	sameLayout(t, map[string]string{"amd64": "mapobject_x86_bpfel.o", "arm64": "mapobject_arm64_bpfel.o"}, []string{"ask"})
}

func sameLayout(t *testing.T, objects map[string]string, names []string) {
	t.Helper()
	a := typesOf(t, objects["amd64"])
	for other, object := range objects {
		b := typesOf(t, object)
		for _, name := range names {
			x, y := structOf(t, a, name), structOf(t, b, name)
			if x.Size != y.Size || !slices.EqualFunc(x.Members, y.Members, sameMember) {
				t.Errorf("struct %s: %d bytes, %v; %s: %d bytes, %v", name, x.Size, x.Members, other, y.Size, y.Members)
			}
		}
	}
}

func sameMember(p, q btf.Member) bool {
	ps, _ := btf.Sizeof(p.Type)
	qs, _ := btf.Sizeof(q.Type)
	return p.Name == q.Name && p.Offset == q.Offset && ps == qs
}
