// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What one descriptor leads to: its struct file, the inode, and the object behind it. All
// pointers must lead to ordinary memory (memory_at); what does not is marked.
#ifndef STACKSHOT_WAIT_OBJECT_H
#define STACKSHOT_WAIT_OBJECT_H

enum { TABLE_LARGE = 512 }; // descriptors that fill a page

// file_table finds the thread's table of descriptors. It is replaced when it grows, so it is
// read once. A large one may be in vmalloc memory, of which nothing tells where it leads;
// its bitmaps lie side by side (alloc_fdtable), which tells a table from other bytes.
static __noinline void file_table(struct wait_work *w, u64 files)
{
	struct file_work *f = &w->f;
	f->table = f->max_fds = f->odd = 0;
	u64 at = memory_at(w, files, 64);
	if (!at)
		return;
	u64 fdt = memory_at(w, field_at(at, P_FILES_FDT), 40);
	if (!fdt)
		return;
	f->max_fds = (u32)field_at(fdt, P_FDT_MAX);
	f->table = field_at(fdt, P_FDT_FD);
	u64 open = field_at(fdt, P_FDT_OPEN), exec = field_at(fdt, P_FDT_EXEC);
	f->odd = f->max_fds >= TABLE_LARGE && !(f->max_fds & 63) && linked(f->table) && linked(open) && exec - open == f->max_fds / 8;
}

// named_file leaves in f->file the struct file of f->fd. False: the record says why not.
static __noinline bool named_file(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 fd = (u32)f->fd, slot = f->table + fd * 8;
	if (!f->table) {
		mark(f->one.flags, FILE_UNREAD);
		return 0;
	}
	if (fd >= f->max_fds) {
		mark(f->one.flags, FILE_CLOSED);
		return 0;
	}
	u64 at = memory_at(w, slot, 8);
	if (!at && f->odd)
		at = slot;
	f->file = at ? kernel_word(at) : 0;
	if (f->file)
		return 1;
	if (at)
		mark(f->one.flags, FILE_CLOSED);
	else
		mark(f->one.flags, FILE_UNREAD);
	return 0;
}

// look_at_anon: all anonymous inodes are one, so the object is what the file itself leads to.
static __noinline void look_at_anon(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_file *r = &f->one;
	r->object = f->private;
	u64 d = memory_at(w, f->dentry, 64);
	u64 name = d ? memory_at(w, field_at(d, P_DENTRY_NAME), sizeof(r->name)) : 0;
	if (!name) {
		mark(r->flags, FILE_UNREAD);
		return;
	}
	bpf_probe_read_kernel_str(r->name, sizeof(r->name), (void *)name);
	peek(r->kind) = anon_kind(*(u64 *)r->name); // in memory, so that the verifier forgets which
	u32 kind = peek(r->kind);
	if (kind != FILE_EVENTFD && kind != FILE_TIMERFD)
		return;
	u64 at = memory_at(w, f->private, 64);
	if (!at)
		mark(r->flags, FILE_UNREAD);
	else if (kind == FILE_EVENTFD && placed(P_EVENTFD_COUNT))
		r->bytes = field_at(at, P_EVENTFD_COUNT);
	else if (kind == FILE_TIMERFD && placed(P_TIMERFD_TICKS))
		r->bytes = field_at(at, P_TIMERFD_TICKS);
}

// look_at_pipe: full and empty are what the kernel's readers and writers ask (pipe_full,
// pipe_empty). The bytes are added up buffer by buffer (sum_pipe).
static __noinline void look_at_pipe(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_file *r = &f->one;
	u64 p = memory_at(w, f->private, 128);
	r->object = p ? f->private : 0;
	if (!p) {
		mark(r->flags, FILE_UNREAD);
		return;
	}
	u32 head = field_at(p, P_PIPE_HEAD), tail = field_at(p, P_PIPE_TAIL), usage = field_at(p, P_PIPE_USAGE), ring = field_at(p, P_PIPE_RING);
	r->readers = field_at(p, P_PIPE_READERS), r->writers = field_at(p, P_PIPE_WRITERS);
	r->room = PAGE_BYTES(usage);
	if (head == tail) {
		mark(r->flags, FILE_EMPTY);
		return;
	}
	if (head - tail >= usage)
		mark(r->flags, FILE_FULL);
	f->private = field_at(p, P_PIPE_BUFS);
	f->cursor = tail, f->stop = head, f->left = sum_most(f, PIPE_LOOKED);
	f->base = ring - 1;
	f->phase = PHASE_SUM_PIPE;
}

// sum_pipe adds the bytes of the next buffer.
static __noinline int sum_pipe(struct wait_work *w)
{
	struct file_work *f = &w->f;
	u64 i = (u32)f->cursor & (u32)f->base, at = memory_at(w, f->private + i * cfg_place[P_BUF_SIZE], cfg_place[P_BUF_SIZE]);
	if (!at || !f->left) {
		f->phase = PHASE_END;
		return 0;
	}
	f->left--;
	f->one.bytes += (u32)field_at(at, P_BUF_LEN);
	f->cursor = (u32)f->cursor + 1;
	if (f->cursor == f->stop)
		f->phase = PHASE_END;
	return 0;
}

// look_at_file fills the record of the struct file in f->file, and says what is to be looked at
// next.
static __noinline void look_at_file(struct wait_work *w)
{
	struct file_work *f = &w->f;
	struct linux_file *r = &f->one;
	u64 file = memory_at(w, f->file, 128), inode = 0, sb = 0;
	if (file) {
		r->file = f->file;
		f->private = field_at(file, P_FILE_PRIVATE), f->dentry = field_at(file, P_FILE_DENTRY);
		r->o_flags = field_at(file, P_FILE_FLAGS);
		f->inode = field_at(file, P_FILE_INODE);
		inode = memory_at(w, f->inode, 128);
	}
	if (inode) {
		r->mode = field_at(inode, P_INODE_MODE) & 0xffff;
		r->inode = field_at(inode, P_INODE_INO);
		r->rdev = dev_of(field_at(inode, P_INODE_RDEV));
		sb = memory_at(w, field_at(inode, P_INODE_SB), 128);
	}
	if (!sb) {
		mark(r->flags, FILE_UNREAD);
		return;
	}
	r->dev = dev_of(field_at(sb, P_SB_DEV)), r->magic = field_at(sb, P_SB_MAGIC);
	r->object = f->inode;
	peek(r->kind) = plain_kind(r->mode);
	u32 kind = peek(r->kind);
	if (kind != FILE_CHAR && kind != FILE_BLOCK)
		r->rdev = 0;
	if (r->magic == MAGIC_ANON) {
		f->phase = PHASE_ANON;
	} else if (r->magic == MAGIC_PIDFD) {
		r->kind = FILE_PIDFD;
	} else if (kind == FILE_FIFO) {
		if (r->magic == MAGIC_PIPE)
			r->kind = FILE_PIPE;
		f->phase = PHASE_PIPE;
	} else if (kind == FILE_SOCKET && r->magic == MAGIC_SOCK) {
		f->phase = PHASE_SOCKET;
	} else if (kind == FILE_CHAR) {
		f->phase = PHASE_CHAR;
	}
}

#endif
