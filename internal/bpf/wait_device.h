// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// Character devices of which more is known: terminals, and FUSE's.
#ifndef STACKSHOT_WAIT_DEVICE_H
#define STACKSHOT_WAIT_DEVICE_H

enum { ICANON_ = 2 };

// tty_bytes: what lies in the line discipline, if that is N_TTY (0). Its data are in vmalloc
// memory; the two ends of a pty, which name each other, vouch for the pointer.
static __always_inline void tty_bytes(struct linux_file *r, u64 tty)
{
	u64 disc = field_at(tty, P_TTY_DISC), line = field_at(tty, P_TTY_LINE) & 0xff;
	if (line || !linked(disc))
		return;
	u64 head = field_at(tty, P_TTY_LFLAG) & ICANON_ ? field_at(disc, P_NTTY_CANON) : field_at(disc, P_NTTY_HEAD);
	r->bytes = head - field_at(disc, P_NTTY_TAIL);
}

static __noinline void look_at_tty(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_file *r = &f->one;
	if (!placed(P_TFP_TTY) || !placed(P_TTY_LINK)) {
		mark(r->flags, FILE_OPAQUE);
		return;
	}
	u64 p = memory_at(w, f->private, 16), named = p ? field_at(p, P_TFP_TTY) : 0, tty = memory_at(w, named, 512);
	if (!tty) {
		mark(r->flags, FILE_UNREAD);
		return;
	}
	r->object = named;
	r->peer = field_at(tty, P_TTY_LINK);
	mark(r->flags, FILE_PEER_KNOWN);
	u64 link = r->peer ? memory_at(w, r->peer, 512) : 0;
	if (link && placed(P_TTY_DISC) && field_at(link, P_TTY_LINK) == named)
		tty_bytes(r, tty);
}

// look_at_fuse: a device that no file system was mounted with leads nowhere. The low bits of
// the pointer may be marks.
static __noinline void look_at_fuse(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_file *r = &f->one;
	r->object = 0;
	if (!placed(P_FUSE_DEV_CONN) && !placed(P_FUSE_DEV_CHAN)) {
		mark(r->flags, FILE_OPAQUE);
		return;
	}
	u64 d = memory_at(w, f->private, 32);
	if (!d)
		return;
	if (placed(P_FUSE_DEV_CONN)) {
		r->object = field_at(d, P_FUSE_DEV_CONN) & ~7ull;
		return;
	}
	u64 chan = memory_at(w, field_at(d, P_FUSE_DEV_CHAN) & ~7ull, 32);
	if (chan && placed(P_FUSE_CHAN_CONN))
		r->object = field_at(chan, P_FUSE_CHAN_CONN);
}

static __noinline void look_at_char(struct wait_work *w)
{
	struct linux_file *r = &w->f.one;
	peek(r->kind) = char_kind(r->rdev); // in memory, so that the verifier forgets which
	if (peek(r->kind) == FILE_FUSE)
		w->f.phase = PHASE_FUSE;
	else if (peek(r->kind) != FILE_CHAR)
		w->f.phase = PHASE_TTY;
}

#endif
