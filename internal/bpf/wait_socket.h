// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What a socket is, and how far its connection is: both addresses, what lies in its queues,
// the other end of a unix socket.
#ifndef STACKSHOT_WAIT_SOCKET_H
#define STACKSHOT_WAIT_SOCKET_H

enum { AF_UNIX_ = 1, AF_INET_ = 2, AF_INET6_ = 10, SOCK_STREAM_ = 1, IPPROTO_TCP_ = 6 };
// include/net/tcp_states.h; sockets of all families use these.
enum { STATE_SYN_SENT = 2, STATE_SYN_RECV = 3, STATE_CLOSE = 7, STATE_LISTEN = 10 };
// Established, and where one side has shut: FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT.
enum { STATES_CONNECTED = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 };
enum { SHUT_IN = 1, SHUT_OUT = 2 };
#define NO_TIMEOUT 0x7fffffffffffffffull // MAX_SCHEDULE_TIMEOUT

static __always_inline u16 host_order(u16 v) { return v << 8 | v >> 8; }

// look_at_inet takes the addresses. A connection of IPv4 at a socket of IPv6 has addresses
// ::ffff:a.b.c.d.
static __always_inline void look_at_inet(struct linux_socket *v, u64 sk)
{
	v->local_port = field_at(sk, P_SK_NUM);
	v->peer_port = host_order(field_at(sk, P_SK_DPORT));
	if (v->family == AF_INET_) {
		*(u32 *)v->local = field_at(sk, P_SK_RCV_SADDR);
		*(u32 *)v->remote = field_at(sk, P_SK_DADDR);
	} else if (placed(P_SK_V6_DADDR)) {
		u64 *local = (u64 *)v->local, *remote = (u64 *)v->remote;
		local[0] = field_at(sk, P_SK_V6_RCV_SADDR), local[1] = kernel_word(sk + cfg_place[P_SK_V6_RCV_SADDR] + 8);
		remote[0] = field_at(sk, P_SK_V6_DADDR), remote[1] = kernel_word(sk + cfg_place[P_SK_V6_DADDR] + 8);
		u64 mapped = 0xffff0000ull;
		if ((!local[0] && (u32)local[1] == mapped) || (!remote[0] && (u32)remote[1] == mapped))
			mark(v->flags, SOCKET_V4);
	}
}

// look_at_tcp counts as SIOCINQ and SIOCOUTQ do.
static __always_inline void look_at_tcp(struct linux_socket *v, u64 sk)
{
	if (v->state == STATE_SYN_SENT || v->state == STATE_SYN_RECV || v->state == STATE_CLOSE)
		return;
	u32 in = (u32)field_at(sk, P_TCP_RCV_NXT) - (u32)field_at(sk, P_TCP_COPIED);
	u32 out = (u32)field_at(sk, P_TCP_WRITE_SEQ) - (u32)field_at(sk, P_TCP_SND_UNA);
	if (in && (v->flags & SOCKET_SHUT_IN)) // the other side's FIN
		in--;
	v->bytes_in = in, v->bytes_out = out;
}

// pid_number is the number of a struct pid in the recorded namespace.
static __always_inline u32 pid_number(struct wait_work *w, u64 named)
{
	u64 level = w->f.level, pid = memory_at(w, named, bpf_core_type_size(struct pid));
	if (!pid || (u32)kernel_word(pid + bpf_core_field_offset(((struct pid *)0)->level)) < level)
		return 0;
	u64 up = pid + bpf_core_field_offset(((struct pid *)0)->numbers) + ((level * bpf_core_type_size(struct upid)) & 0xfff);
	return kernel_word(up + bpf_core_field_offset(struct upid, nr));
}

// look_at_unix finds who the other end was. What that is now comes in a step of its own: the
// verifier walks each way through this one with each way through what is behind it.
static __noinline void look_at_unix(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_socket *v = &f->sock;
	struct linux_file *r = &f->one;
	u64 sk = f->sk, pid = field_at(sk, P_SK_PEER_PID);
	if (pid) {
		v->peer_tgid = pid_number(w, pid);
		if (v->peer_tgid)
			mark(v->flags, SOCKET_PEER_CRED);
	}
	if (!placed(P_UNIX_PEER)) {
		mark(r->flags, FILE_OPAQUE);
		r->object = 0;
		f->phase = PHASE_END;
		return;
	}
	f->phase = PHASE_PEER;
}

// look_at_peer finds the other end of a unix socket.
static __noinline void look_at_peer(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_socket *v = &f->sock;
	struct linux_file *r = &f->one;
	u64 sk = f->sk;
	f->phase = PHASE_QUEUES;
	r->peer = field_at(sk, P_UNIX_PEER);
	mark(r->flags, FILE_PEER_KNOWN);
	// Who accepted has the listener's address, who connected mostly none.
	if (placed(P_UNIX_ADDR) && field_at(sk, P_UNIX_ADDR))
		mark(v->flags, SOCKET_NAMED);
	u64 peer = r->peer ? memory_at(w, r->peer, 832) : 0;
	if (!peer)
		return;
	if (placed(P_UNIX_ADDR) && field_at(peer, P_UNIX_ADDR))
		mark(v->flags, SOCKET_PEER_NAMED);
	u64 socket = memory_at(w, field_at(peer, P_SK_SOCKET), 128);
	if (socket) // else closed, or not accepted yet
		v->peer_inode = kernel_word(socket + cfg_place[P_SOCKET_INODE] + cfg_place[P_INODE_INO]);
}

// look_at_queues: bytes on the way, or connections that nobody has accepted. A listening unix
// socket has these in its queue of messages.
static __noinline void look_at_queues(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_socket *v = &f->sock;
	u64 sk = f->sk, queued = (u32)kernel_word(sk + cfg_place[P_SK_QUEUE] + cfg_place[P_SK_QLEN]);
	if (v->state == STATE_LISTEN) {
		mark(v->flags, SOCKET_LISTENS);
		v->backlog = v->family == AF_UNIX_ ? queued : field_at(sk, P_SK_BACKLOG);
		v->backlog_max = field_at(sk, P_SK_BACKLOG_MAX);
		return;
	}
	if (v->protocol == IPPROTO_TCP_ && v->kind == SOCK_STREAM_ && v->family != AF_UNIX_) {
		look_at_tcp(v, sk);
		return;
	}
	v->bytes_out = (u32)field_at(sk, P_SK_WMEM) - 1; // the count begins with 1
	if (!queued)
		return;
	f->stop = f->private + cfg_place[P_SK_QUEUE];
	f->cursor = kernel_word(sk + cfg_place[P_SK_QUEUE]);
	f->left = sum_most(f, QUEUE_LOOKED);
	f->phase = PHASE_SUM_QUEUE;
}

// sum_queue adds the bytes of the next message, less those that were read already.
static __noinline int sum_queue(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 skb = f->cursor == f->stop || !f->left ? 0 : memory_at(w, f->cursor, 64);
	if (!skb) {
		f->phase = PHASE_END;
		return 0;
	}
	f->left--;
	u32 len = field_at(skb, P_SKB_LEN);
	if (f->sock.family == AF_UNIX_ && placed(P_UNIX_CONSUMED))
		len -= (u32)kernel_word(skb + cfg_place[P_SKB_CB] + cfg_place[P_UNIX_CONSUMED]);
	f->sock.bytes_in += len;
	f->cursor = kernel_word(skb); // next
	return 0;
}

// look_at_marks: how far the connection is, by its state and by which sides were shut; and
// whether the socket has a timeout for what its thread does.
static __noinline void look_at_marks(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_socket *v = &f->sock;
	u64 sk = f->sk;
	u32 shut = field_at(sk, P_SK_SHUTDOWN);
	if (shut & SHUT_IN)
		mark(v->flags, SOCKET_SHUT_IN);
	if (shut & SHUT_OUT)
		mark(v->flags, SOCKET_SHUT_OUT);
	if (STATES_CONNECTED >> (v->state & 15) & 1)
		mark(v->flags, SOCKET_CONNECTED);
	u64 limit = NO_TIMEOUT;
	if (f->op == FILE_OP_READ || f->op == FILE_OP_ACCEPT)
		limit = field_at(sk, P_SK_RCVTIMEO);
	if (f->op == FILE_OP_WRITE || f->op == FILE_OP_CONNECT)
		limit = field_at(sk, P_SK_SNDTIMEO);
	if (limit != NO_TIMEOUT)
		mark(f->one.flags, FILE_TIMED);
}

// look_at_socket fills the record of the socket at hand. f->sk is where the sock is read,
// f->private its address.
static __noinline void look_at_socket(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_socket *v = &f->sock;
	struct linux_file *r = &f->one;
	u64 socket = memory_at(w, f->private, 64);
	f->private = socket ? field_at(socket, P_SOCKET_SK) : 0;
	r->object = f->private;
	u64 sk = f->private ? memory_at(w, f->private, 640) : 0;
	if (!sk) {
		r->object = 0;
		mark(r->flags, FILE_UNREAD);
		return;
	}
	f->sk = sk;
	v->family = field_at(sk, P_SK_FAMILY);
	v->state = field_at(sk, P_SK_STATE) & 0xff;
	v->kind = field_at(sk, P_SK_TYPE), v->protocol = field_at(sk, P_SK_PROTOCOL);
	v->error = field_at(sk, P_SK_ERR);
	v->inode = r->inode;
	// The first namespace lies in the kernel's image: by helper, as inum_of.
	u64 net = placed(P_SK_NET) ? field_at(sk, P_SK_NET) : 0;
	u32 inum = 0;
	if (linked(net))
		bpf_probe_read_kernel(&inum, sizeof(inum), (void *)(net + cfg_place[P_NET_INUM]));
	r->netns = v->netns = inum;
	look_at_marks(w);
	if (v->family == AF_INET_ || v->family == AF_INET6_)
		look_at_inet(v, sk);
	f->phase = v->family == AF_UNIX_ ? PHASE_UNIX : PHASE_QUEUES;
}

#endif
