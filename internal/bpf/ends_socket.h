// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Ends that are sockets: by the socket, by its unix peer, by the pair of addresses, by the
// port of a listener; and what lies in their queues (ends_list.h).
#ifndef STACKSHOT_ENDS_SOCKET_H
#define STACKSHOT_ENDS_SOCKET_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct in6_addr___e { u64 in6_u; };
typedef struct { void *net; } possible_net_t;
struct sock_common___e {
	u16 skc_family, skc_num, skc_dport;
	u8 skc_state;
	u32 skc_daddr, skc_rcv_saddr;
	struct in6_addr___e skc_v6_daddr, skc_v6_rcv_saddr;
	possible_net_t skc_net;
};
struct sk_buff_head___e { void *next; };
struct sock___e { struct sock_common___e __sk_common; u16 sk_type, sk_protocol; u32 sk_ack_backlog; struct sk_buff_head___e sk_receive_queue; };
struct sk_buff___e { void *sk; u32 len; };
struct tcp_sock___e { u32 rcv_nxt, copied_seq; };
struct udp_sock___e { struct sk_buff_head___e reader_queue; };
#pragma clang attribute pop

enum { UNIX = 1, INET = 2, INET6 = 10, STREAM = 1, DGRAM = 2, LISTENS = 10, TCP = 6, UDP = 17 };
enum { QUEUE_LONG = 64, QUEUE_ACCEPTS = 128 };

#define sock_word(sk, field) word_of(sk, sock___e, __sk_common.field)

// v4_mapped: an IPv6 socket uses this address for IPv4 (::ffff:a.b.c.d).
static __always_inline bool v4_mapped(const u64 *a) { return !a[0] && (u32)a[1] == 0xffff0000; }

static __always_inline void read_addresses(struct ends_work *w, u64 sk)
{
	struct linux_end *e = &w->out.v;
	u64 *local = (u64 *)e->local, *remote = (u64 *)e->remote;
	e->local_port = sock_word(sk, skc_num);
	e->peer_port = __builtin_bswap16(sock_word(sk, skc_dport));
	if (e->family == INET) {
		local[0] = (u32)sock_word(sk, skc_rcv_saddr), remote[0] = (u32)sock_word(sk, skc_daddr);
	} else if (has_field(sock___e, __sk_common.skc_v6_daddr)) { // CONFIG_IPV6
		u64 at = sk + place_of(sock___e, __sk_common.skc_v6_rcv_saddr);
		local[0] = kernel_word(at), local[1] = kernel_word(at + 8);
		at = sk + place_of(sock___e, __sk_common.skc_v6_daddr);
		remote[0] = kernel_word(at), remote[1] = kernel_word(at + 8);
	}
}

// pair_key fills w->key with both addresses, whatever the family of the socket says.
static __always_inline void pair_key(struct ends_work *w)
{
	struct linux_end *e = &w->out.v;
	struct end_key *k = &w->key;
	__builtin_memset(k, 0, sizeof(*k));
	__builtin_memcpy(k->local, e->local, 16);
	__builtin_memcpy(k->remote, e->remote, 16);
	k->v4 = e->family == INET;
	if (v4_mapped(k->local) && v4_mapped(k->remote)) {
		k->local[0] = k->local[1] >> 32, k->remote[0] = k->remote[1] >> 32;
		k->local[1] = k->remote[1] = 0;
		k->v4 = 1;
	}
	k->by = BY_PAIR, k->netns = e->netns, k->sort = e->sort;
	k->local_port = e->local_port, k->peer_port = e->peer_port;
}

static long sum_skb(u32 i, struct ends_work **work)
{
	struct ends_work *w = *work;
	u64 skb = node_here(w);
	if (!skb)
		return 1;
	w->bytes += (u32)word_of(skb, sk_buff___e, len);
	go_on(w, skb);
	return 0;
}

static __always_inline u64 tcp_bytes(u64 sk)
{
	s32 n = (u32)word_of(sk, tcp_sock___e, rcv_nxt) - (u32)word_of(sk, tcp_sock___e, copied_seq);
	return n > 0 ? n : 0;
}

static __noinline void socket_bytes(struct ends_work *w, u64 sk)
{
	struct linux_end *e = &w->out.v;
	u16 protocol = word_of(sk, sock___e, sk_protocol);
	w->bytes = 0;
	if (e->family != UNIX && protocol == TCP) {
		e->bytes_in = tcp_bytes(sk);
		return;
	}
	start_list(w, sk + place_of(sock___e, sk_receive_queue));
	bpf_loop(QUEUE_LONG, sum_skb, &w, 0);
	if (e->family != UNIX && protocol == UDP) {
		start_list(w, sk + place_of(udp_sock___e, reader_queue));
		bpf_loop(QUEUE_LONG, sum_skb, &w, 0);
	}
	e->bytes_in = w->bytes;
}

// see_socket fills the rest of the end.
static __noinline void see_socket(struct ends_work *w)
{
	struct linux_end *e = &w->out.v;
	u64 sk = w->s.object;
	if (!sk)
		return;
	w->state = (u8)sock_word(sk, skc_state);
	e->family = sock_word(sk, skc_family);
	e->sort = word_of(sk, sock___e, sk_type);
	if (has_field(sock___e, __sk_common.skc_net.net)) { // CONFIG_NET_NS
		u64 net = sock_word(sk, skc_net.net);
		e->netns = net ? word_of(net, net, ns.inum) : 0;
	}
	if (e->family == UNIX)
		e->peer = unix_peer_of(sk);
	if (e->family == INET || e->family == INET6)
		read_addresses(w, sk);
	if (w->state == LISTENS && (e->sort == STREAM || e->family == UNIX)) {
		e->flags |= END_LISTENS;
		e->backlog = word_of(sk, sock___e, sk_ack_backlog);
	} else if (e->family == UNIX || e->family == INET || e->family == INET6) {
		socket_bytes(w, sk);
	}
}

// may_match says whether it is worth to see all of a socket: most are nobody's other end.
static __always_inline bool may_match(struct ends_work *w, struct ends_ask *a)
{
	u64 sk = w->s.object;
	if (!sk)
		return 0;
	if (find_word(w, BY_OBJECT, sk))
		return 1;
	u16 family = sock_word(sk, skc_family);
	if (family == INET || family == INET6)
		return a->flags & ASK_INET;
	if (family != UNIX || !(a->flags & ASK_UNIX))
		return 0;
	if ((u8)sock_word(sk, skc_state) == LISTENS)
		return 1;
	return (a->flags & ASK_PEERS) && find_word(w, BY_PEER, unix_peer_of(sk));
}

struct walk { struct ends_work *w; struct seq_file *seq; };

// accept_one: a connection that nobody has accepted is in its listener's queue, as a packet
// that belongs to the side of the connection that has no file yet.
static long accept_one(u32 i, struct walk *walk)
{
	struct ends_work *w = walk->w;
	u64 skb = node_here(w);
	if (!skb)
		return 1;
	struct end_wanted *m = find_word(w, BY_OBJECT, word_of(skb, sk_buff___e, sk));
	if (m)
		put_end(w, m, walk->seq, END_ACCEPTS);
	go_on(w, skb);
	return 0;
}

static __noinline void unix_ends(struct ends_work *w, struct seq_file *seq)
{
	struct linux_end *e = &w->out.v;
	if (e->flags & END_LISTENS) {
		struct walk walk = { w, seq };
		start_list(w, w->s.object + place_of(sock___e, sk_receive_queue));
		bpf_loop(QUEUE_ACCEPTS, accept_one, &walk, 0);
	} else if (e->peer) {
		put_end(w, find_word(w, BY_PEER, e->peer), seq, END_PEER);
	}
}

// inet_ends: the key of a wanted pair is written as the other end has it. A listener, and a
// datagram socket that is not connected, is found by its port.
static __noinline void inet_ends(struct ends_work *w, struct seq_file *seq)
{
	struct linux_end *e = &w->out.v;
	if (e->peer_port) {
		pair_key(w);
		put_end(w, find(w), seq, END_PAIR);
	} else if (e->local_port && ((e->flags & END_LISTENS) || e->sort == DGRAM)) {
		start_key(w, BY_PORT);
		w->key.local_port = e->local_port, w->key.netns = e->netns, w->key.sort = e->sort;
		put_end(w, find(w), seq, 0);
	}
}

#endif
