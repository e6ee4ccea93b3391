// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What an open file is and leads to, by its address as a number (kcdata/linux_file.go).
// Everything is read by kernel_word, so the includer decides how memory is read
// (kernelword.h, sink_region.h); what cannot be read is 0. An includer for which not every
// pointer may be followed defines reachable(at, len) before: the same address, or 0.
#ifndef STACKSHOT_FILE_KIND_H
#define STACKSHOT_FILE_KIND_H

#ifndef reachable
#define reachable(at, len) (at)
#endif

// The kernel's types, as far as they are read here, as flavors: the names before ___ count.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct qstr___k { void *name; };
struct dentry___k { struct qstr___k d_name; };
struct path___k { void *dentry; };
struct super_block___k { u32 s_dev; unsigned long s_magic; };
struct inode___k { u16 i_mode; u32 i_rdev; unsigned long i_ino; void *i_sb, *i_pipe, *i_flctx; };
struct file___k { unsigned int f_mode, f_flags; void *private_data, *f_inode; struct path___k f_path; };
struct socket___k { void *sk; };
struct unix_sock___k { void *peer; };
struct tty_file_private___k { void *tty; };
struct tty_struct___k { void *link; };
struct fuse_dev___fc { void *fc; };
struct fuse_dev___chan { void *chan; }; // since 7.3
struct fuse_chan___k { void *conn; };
#pragma clang attribute pop

#define place_of(type, field) bpf_core_field_offset(((struct type *)0)->field)
#define word_of(at, type, field) kernel_word((at) + place_of(type, field))
#define has_field(type, field) bpf_core_field_exists(((struct type *)0)->field)

enum file_kind {
	FILE_OTHER, FILE_REGULAR, FILE_DIRECTORY, FILE_BLOCK, FILE_CHAR, FILE_PIPE, FILE_FIFO, FILE_SOCKET, FILE_TERMINAL,
	FILE_PT_MASTER, FILE_EPOLL, FILE_EVENTFD, FILE_TIMERFD, FILE_SIGNALFD, FILE_PIDFD, FILE_INOTIFY, FILE_FANOTIFY,
	FILE_USERFAULTFD, FILE_FUSE, FILE_IO_URING,
};

// The part of an open file that says what it is.
struct file_seen {
	u64 inode_at, private;         // addresses
	u64 inode, dev, rdev, magic;   // i_ino; major<<32 | minor
	u64 object, peer;              // addresses, as in LinuxFile
	u64 name[3];                   // of an anonymous inode; else 0
	u32 kind, mode;
};

// Of a dev_t (MKDEV, include/linux/kdev_t.h).
static __always_inline u64 dev_pair(u32 dev) { return (u64)(dev >> 20) << 32 | (dev & 0xfffff); }

enum { PIPE_MAGIC = 0x50495045, PIDFS_MAGIC = 0x50494446, ANON_MAGIC = 0x09041934 };

static __always_inline u32 char_kind(u64 rdev)
{
	u32 major = rdev >> 32, minor = rdev;
	if (major == 10 && minor == 229)
		return FILE_FUSE;
	if ((major >= 128 && major < 136) || (major == 5 && minor == 2))
		return FILE_PT_MASTER;
	return major == 4 || major == 5 || (major >= 136 && major < 144) ? FILE_TERMINAL : FILE_CHAR;
}

// Eight characters as the word that a load of them gives.
#define W8(a, b, c, d, e, f, g, h) \
	((u64)(a) | (u64)(b) << 8 | (u64)(c) << 16 | (u64)(d) << 24 | (u64)(e) << 32 | (u64)(f) << 40 | (u64)(g) << 48 | (u64)(h) << 56)

// The names differ within their first eight characters.
static __always_inline u32 name_kind(u64 name)
{
	if (name == W8('[', 'e', 'v', 'e', 'n', 't', 'p', 'o'))
		return FILE_EPOLL;
	if (name == W8('[', 'e', 'v', 'e', 'n', 't', 'f', 'd'))
		return FILE_EVENTFD;
	if (name == W8('[', 't', 'i', 'm', 'e', 'r', 'f', 'd'))
		return FILE_TIMERFD;
	if (name == W8('[', 's', 'i', 'g', 'n', 'a', 'l', 'f'))
		return FILE_SIGNALFD;
	if (name == W8('[', 'p', 'i', 'd', 'f', 'd', ']', 0))
		return FILE_PIDFD;
	if (name == W8('i', 'n', 'o', 't', 'i', 'f', 'y', 0))
		return FILE_INOTIFY;
	if (name == W8('[', 'f', 'a', 'n', 'o', 't', 'i', 'f'))
		return FILE_FANOTIFY;
	if (name == W8('[', 'u', 's', 'e', 'r', 'f', 'a', 'u'))
		return FILE_USERFAULTFD;
	return name == W8('[', 'i', 'o', '_', 'u', 'r', 'i', 'n') ? FILE_IO_URING : FILE_OTHER;
}

// An anonymous inode has no mode before 6.17, and S_IFREG since: the file system comes first.
static __always_inline u32 kind_by(u32 mode, u64 magic, u64 rdev, u64 name)
{
	if (magic == ANON_MAGIC)
		return name_kind(name);
	if (magic == PIDFS_MAGIC)
		return FILE_PIDFD;
	switch (mode & 0170000) {
	case 0010000: return magic == PIPE_MAGIC ? FILE_PIPE : FILE_FIFO;
	case 0020000: return char_kind(rdev);
	case 0040000: return FILE_DIRECTORY;
	case 0060000: return FILE_BLOCK;
	case 0100000: return FILE_REGULAR;
	case 0140000: return FILE_SOCKET;
	}
	return FILE_OTHER;
}

// fuse_conn_of: 0: the file is of no connection yet, or this kernel does not tell (fuse is a
// module without type information).
static __always_inline u64 fuse_conn_of(u64 dev)
{
	if (!(dev = reachable(dev, 64)))
		return 0;
	if (has_field(fuse_dev___chan, chan)) {
		u64 chan = reachable(word_of(dev, fuse_dev___chan, chan), 512);
		return chan ? word_of(chan, fuse_chan___k, conn) : 0;
	}
	return has_field(fuse_dev___fc, fc) ? word_of(dev, fuse_dev___fc, fc) : 0;
}

// tty_of: the terminal of an open file, by its private_data.
static __always_inline u64 tty_of(u64 private)
{
	private = reachable(private, 32);
	return private ? word_of(private, tty_file_private___k, tty) : 0;
}

// see_object fills object and peer. The one inode of all anonymous files is no object.
static __always_inline void see_object(struct file_seen *s)
{
	u32 kind = s->kind;
	u64 at = s->private;
	if (kind == FILE_PIPE || kind == FILE_FIFO) {
		s->object = word_of(s->inode_at, inode___k, i_pipe);
	} else if (kind == FILE_SOCKET) {
		at = reachable(at, 64);
		s->object = at ? word_of(at, socket___k, sk) : 0;
	} else if (kind == FILE_TERMINAL || kind == FILE_PT_MASTER) {
		s->object = at = tty_of(at);
		at = reachable(at, 64);
		s->peer = at ? word_of(at, tty_struct___k, link) : 0;
	} else if (kind == FILE_FUSE) {
		s->object = fuse_conn_of(at);
	} else {
		s->object = s->magic == ANON_MAGIC ? at : s->inode_at;
	}
}

// see_file fills s from the file at this address; kind, dev and so on stay 0 if the file has
// no inode. A unix socket's peer is not looked for: unix_peer_of.
static __always_inline void see_file(struct file_seen *s, u64 file)
{
	__builtin_memset(s, 0, sizeof(*s));
	u64 inode = reachable(word_of(file, file___k, f_inode), 512);
	if (!inode)
		return;
	s->inode_at = inode;
	s->private = word_of(file, file___k, private_data);
	s->mode = (u16)word_of(inode, inode___k, i_mode);
	s->inode = word_of(inode, inode___k, i_ino);
	s->rdev = dev_pair(word_of(inode, inode___k, i_rdev));
	u64 sb = reachable(word_of(inode, inode___k, i_sb), 512);
	if (sb) {
		s->dev = dev_pair(word_of(sb, super_block___k, s_dev));
		s->magic = word_of(sb, super_block___k, s_magic);
	}
	if (s->magic == ANON_MAGIC) {
		u64 dentry = reachable(word_of(file, file___k, f_path.dentry), 128);
		u64 name = dentry ? reachable(word_of(dentry, dentry___k, d_name.name), 24) : 0;
		if (name)
			s->name[0] = kernel_word(name), s->name[1] = kernel_word(name + 8), s->name[2] = kernel_word(name + 16);
	}
	s->kind = kind_by(s->mode, s->magic, s->rdev, s->name[0]);
	see_object(s);
}

// unix_peer_of: the other end of a unix socket; 0: not connected, or this kernel does not tell.
static __always_inline u64 unix_peer_of(u64 sk)
{
	return has_field(unix_sock___k, peer) ? word_of(sk, unix_sock___k, peer) : 0;
}

#endif
