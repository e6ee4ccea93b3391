package bpf

import (
	"runtime"

	"stackshot/internal/sysno"
	"stackshot/kcdata"
)

// call is a row of the programs' table of system calls (wait_call.h, struct file_call).
type call struct{ Op, Way, Flags, Time uint8 }

// Where a call has its descriptors (wait_call.h, enum file_way), and how its timeout is
// given: in an argument, by a pointer that may be 0 or in milliseconds that may be negative.
const (
	wayOne = iota + 1
	wayTwo
	waySplice
	wayPoll
	waySelect
	wayEpoll
	_ // of the programs alone: the set of an epoll
	wayFlock
	wayFcntl
	waySocketcall

	timePointer, timeMs = 1 << 3, 1 << 4
)

// fileCalls is the size of the programs' table for one ABI, and socketCalls that of
// socketcall(2) (wait_call.h).
const fileCalls, socketCalls = 512, 32

// callShapes are the calls that have a descriptor and may sleep, by the names that any ABI
// gives them.
var callShapes = shapes(map[call][]string{
	{kcdata.FileOpRead, wayOne, kcdata.FileToRead, 0}: {"read", "pread64", "readv", "preadv", "preadv2", "getdents", "getdents64", "readdir",
		"recv", "recvfrom", "recvmsg"},
	{kcdata.FileOpRead, wayOne, kcdata.FileToRead, timePointer | 4}: {"recvmmsg", "recvmmsg_time64", "mq_timedreceive", "mq_timedreceive_time64"},
	{kcdata.FileOpWrite, wayOne, kcdata.FileToWrite, 0}: {"write", "pwrite64", "writev", "pwritev", "pwritev2", "send", "sendto", "sendmsg",
		"sendmmsg", "vmsplice"},
	{kcdata.FileOpWrite, wayOne, kcdata.FileToWrite, timePointer | 4}: {"mq_timedsend", "mq_timedsend_time64"},
	{kcdata.FileOpRead, wayTwo, kcdata.FileToRead, 0}:                 {"tee"},
	{kcdata.FileOpRead, waySplice, kcdata.FileToRead, 0}:              {"splice", "copy_file_range"},
	{kcdata.FileOpWrite, wayTwo, kcdata.FileToWrite, 0}:               {"sendfile", "sendfile64"},
	{kcdata.FileOpAccept, wayOne, kcdata.FileToRead, 0}:               {"accept", "accept4"},
	{kcdata.FileOpConnect, wayOne, 0, 0}:                              {"connect"},
	{kcdata.FileOpPoll, wayPoll, 0, timeMs | 2}:                       {"poll"},
	{kcdata.FileOpPoll, wayPoll, 0, timePointer | 2}:                  {"ppoll", "ppoll_time64"},
	{kcdata.FileOpPoll, waySelect, 0, timePointer | 4}:                {"select", "_newselect", "pselect6", "pselect6_time64"},
	{kcdata.FileOpEpoll, wayEpoll, 0, timeMs | 3}:                     {"epoll_wait", "epoll_pwait"},
	{kcdata.FileOpEpoll, wayEpoll, 0, timePointer | 3}:                {"epoll_pwait2"},
	{kcdata.FileOpFlock, wayFlock, 0, 0}:                              {"flock"},
	{kcdata.FileOpOther, wayFcntl, 0, 0}:                              {"fcntl", "fcntl64"},
	{kcdata.FileOpSync, wayOne, 0, 0}:                                 {"fsync", "fdatasync", "syncfs", "sync_file_range", "arm_sync_file_range"},
	{kcdata.FileOpIoctl, wayOne, 0, 0}:                                {"ioctl"},
	{kcdata.FileOpClose, wayOne, 0, 0}:                                {"close"},
	{kcdata.FileOpOther, wayOne, 0, 0}: {"lseek", "_llseek", "fallocate", "ftruncate", "ftruncate64", "fstat", "fstat64", "fstatfs", "fstatfs64",
		"fchmod", "fchown", "fchown32", "fchdir", "fsetxattr", "fgetxattr", "flistxattr", "fremovexattr", "readahead", "fadvise64",
		"fadvise64_64", "bind", "listen", "shutdown", "getsockopt", "setsockopt", "io_uring_enter", "epoll_ctl", "setns"},
	{kcdata.FileOpOther, waySocketcall, 0, 0}: {"socketcall"},
})

// socketcallNumbers are the calls that socketcall(2) of i386 makes (include/uapi/linux/net.h).
var socketcallNumbers = map[int]string{
	2: "bind", 3: "connect", 4: "listen", 5: "accept", 9: "send", 10: "recv", 11: "sendto", 12: "recvfrom", 13: "shutdown", 14: "setsockopt",
	15: "getsockopt", 16: "sendmsg", 17: "recvmsg", 18: "accept4", 19: "recvmmsg", 20: "sendmmsg",
}

func shapes(by map[call][]string) map[string]call {
	all := map[string]call{}
	for shape, names := range by {
		for _, name := range names {
			all[name] = shape
		}
	}
	return all
}

// callTable is the table for the machine's own ABI, then that of 32-bit programs.
func callTable() (table [2 * fileCalls]call) {
	for abi := range sysno.Unknown {
		for nr := range fileCalls {
			name, _ := sysno.Name(runtime.GOARCH, abi, int64(nr))
			if abi == sysno.Compat && name == "select" { // the old one, whose arguments are in memory
				continue
			}
			table[int(abi)*fileCalls+nr] = callShapes[name]
		}
	}
	return table
}

func socketcallTable() (table [socketCalls]call) {
	for nr, name := range socketcallNumbers {
		table[nr] = callShapes[name]
	}
	return table
}
