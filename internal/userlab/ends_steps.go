//go:build linux

package userlab

import (
	"fmt"
	"strconv"
	"strings"

	"stackshot/internal/testtask"
)

// spread writes out the steps of groups: each role of a group has its own.
func spread(steps []string) (out []string) {
	for _, s := range steps {
		role, rest, _ := strings.Cut(s, " ")
		group, count, is := strings.Cut(role, "*")
		n, err := strconv.Atoi(count)
		if !is || err != nil {
			out = append(out, s)
			continue
		}
		for i := range n {
			out = append(out, fmt.Sprintf("%s%d %s", group, i, rest))
		}
	}
	return out
}

// Where the last verb of a role waits in the kernel: one of these functions is on its stack.
// Some went by several names, and some are of several kinds of files.
var verbsIn = map[string]testtask.ThreadWant{
	"read": waitsIn("SD", "pipe_read", "anon_pipe_read", "fifo_pipe_read", "unix_stream_read_generic", "__skb_wait_for_more_packets",
		"tcp_recvmsg", "tcp_recvmsg_locked", "sk_wait_data", "eventfd_read", "timerfd_read", "timerfd_read_iter", "n_tty_read",
		"filemap_read", "folio_wait_bit_common", "fdget_pos", "__fdget_pos", "fuse_simple_request", "__fuse_simple_request", "request_wait_answer"),
	"recv": waitsIn("S", "unix_stream_read_generic", "__skb_wait_for_more_packets", "tcp_recvmsg", "tcp_recvmsg_locked", "sk_wait_data"),
	"write": waitsIn("SD", "pipe_write", "anon_pipe_write", "fifo_pipe_write", "sock_alloc_send_pskb", "sk_stream_wait_memory",
		"tcp_sendmsg", "unix_wait_for_peer", "n_tty_write", "eventfd_write", "shmem_file_write_iter", "generic_file_write_iter"),
	"write-page":    waitsIn("SD", "handle_userfault"),
	"touch-page":    waitsIn("S", "handle_userfault"),
	"await":         waitsIn("S", "inet_csk_accept", "unix_accept", "__skb_wait_for_more_packets"),
	"reach":         waitsIn("S", "inet_wait_for_connect", "__inet_stream_connect", "unix_wait_for_peer", "unix_stream_connect"),
	"overfill":      waitsIn("S", "unix_wait_for_peer"),
	"poll":          waitsIn("S", "do_sys_poll", "do_poll"),
	"select":        waitsIn("S", "do_select", "core_sys_select"),
	"epoll":         waitsIn("S", "do_epoll_wait", "ep_poll"),
	"flock":         waitsIn("S", "flock_lock_inode_wait", "locks_lock_inode_wait", "fuse_setlk", "request_wait_answer", "__fuse_simple_request"),
	"posix":         waitsIn("S", "do_lock_file_wait", "fcntl_setlk", "fuse_setlk"),
	"ofd":           waitsIn("S", "do_lock_file_wait", "fcntl_setlk"),
	"open-to-read":  waitsIn("SD", "fifo_open", "wait_for_partner", "request_wait_answer", "__fuse_simple_request"),
	"open-to-write": waitsIn("SD", "fifo_open", "wait_for_partner"),
	"stat":          waitsIn("SD", "request_wait_answer", "__fuse_simple_request"),
	"look":          waitsIn("D", "lookup_slow", "__lookup_slow", "walk_component"),
	"mkdir":         waitsIn("SD", "request_wait_answer", "__fuse_simple_request"),
	"fsync":         waitsIn("SD", "request_wait_answer", "__fuse_simple_request", "fuse_fsync"),
	"exec":          waitsIn("D", "begin_new_exec", "de_thread"),
	"wait":          waitsIn("S", "do_wait", "do_wait4", "kernel_wait4", "__do_sys_wait4"),
	"lock":          inFutex,
	"nap":           inNap,
	"stop":          waitsIn("T", "do_signal_stop", "get_signal"),
	"busy":          {States: "R"},
}

// endsIn is where each role is after its last step.
func endsIn(steps []string) map[string]testtask.ThreadWant {
	m := map[string]testtask.ThreadWant{}
	for _, s := range steps {
		w := strings.Fields(s)
		verb := w[1]
		if verb == "serve" {
			verb = w[4] // what it does when a request has come that it does not answer
		}
		m[w[0]] = verbsIn[verb]
	}
	return m
}
