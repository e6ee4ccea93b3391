// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What an open file is and leads to (kcdata/linux_file.go). The window has its own way to read
// the same (wait_object.h), since nothing may fault there.
#ifndef STACKSHOT_ENDS_FILE_H
#define STACKSHOT_ENDS_FILE_H

// The kernel's types, as far as they are read here, as flavors: the names before ___ count.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct qstr___k { void *name; };
struct dentry___k { struct qstr___k d_name; };
struct path___k { struct dentry___k *dentry; };
struct super_block___k { u32 s_dev; unsigned long s_magic; };
struct inode___k { u16 i_mode; u32 i_rdev; unsigned long i_ino; struct super_block___k *i_sb; void *i_pipe, *i_flctx; };
struct file___k { unsigned int f_mode; void *private_data; struct inode___k *f_inode; struct path___k f_path; };
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

// The part of an open file that says what it is.
struct file_seen {
	u64 inode_at, private;  // addresses
	u64 inode, dev, magic;  // i_ino; major<<32 | minor
	u64 object, peer;       // addresses, as in LinuxFile
	u32 kind, mode;
};

// An anonymous inode has no mode before 6.17, and S_IFREG since: the file system comes first.
static __always_inline u32 kind_by(u32 mode, u64 magic, u64 rdev, u64 name)
{
	if (magic == MAGIC_ANON)
		return anon_kind(name);
	if (magic == MAGIC_PIDFD)
		return FILE_PIDFD;
	u32 kind = plain_kind(mode);
	if (kind == FILE_FIFO && magic == MAGIC_PIPE)
		return FILE_PIPE;
	return kind == FILE_CHAR ? char_kind(rdev) : kind;
}

// fuse_conn_of: 0: the file is of no connection yet, or this kernel does not tell (fuse is a
// module without type information). The low bits of the first pointer may be marks.
static __always_inline u64 fuse_conn_of(u64 dev)
{
	if (has_field(fuse_dev___chan, chan)) {
		u64 chan = word_of(dev, fuse_dev___chan, chan) & ~7ull;
		return chan ? word_of(chan, fuse_chan___k, conn) : 0;
	}
	return has_field(fuse_dev___fc, fc) ? word_of(dev, fuse_dev___fc, fc) & ~7ull : 0;
}

// see_object fills object and peer. All anonymous files have one inode, so that is no object.
// A unix socket's peer is not looked for: unix_peer_of.
static __always_inline void see_object(struct file_seen *s)
{
	u32 kind = s->kind;
	u64 at = s->private;
	if (kind == FILE_PIPE || kind == FILE_FIFO) {
		s->object = word_of(s->inode_at, inode___k, i_pipe);
	} else if (kind == FILE_SOCKET) {
		s->object = at ? word_of(at, socket___k, sk) : 0;
	} else if (kind == FILE_TERMINAL || kind == FILE_PT_MASTER) {
		s->object = at ? word_of(at, tty_file_private___k, tty) : 0;
		s->peer = s->object ? word_of(s->object, tty_struct___k, link) : 0;
	} else if (kind == FILE_FUSE) {
		s->object = at ? fuse_conn_of(at) : 0;
	} else {
		s->object = s->magic == MAGIC_ANON ? at : s->inode_at;
	}
}

// see_file fills s.
static __always_inline void see_file(struct file_seen *s, struct file *file)
{
	struct file___k *f = (void *)file;
	struct inode___k *inode = f->f_inode;
	s->object = s->peer = s->dev = s->magic = 0;
	s->inode_at = (u64)inode;
	s->private = (u64)f->private_data;
	s->mode = inode->i_mode;
	s->inode = inode->i_ino;
	struct super_block___k *sb = inode->i_sb;
	s->magic = sb->s_magic;
	s->dev = dev_of(sb->s_dev);
	u64 name = 0;
	if (s->magic == MAGIC_ANON)
		name = kernel_word((u64)f->f_path.dentry->d_name.name);
	s->kind = kind_by(s->mode, s->magic, dev_of(inode->i_rdev), name);
	see_object(s);
}

// unix_peer_of: the other end of a unix socket; 0: not connected, or this kernel does not tell.
static __always_inline u64 unix_peer_of(u64 sk)
{
	return has_field(unix_sock___k, peer) ? word_of(sk, unix_sock___k, peer) : 0;
}

#endif
