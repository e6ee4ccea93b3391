// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The file of the mapping at hand (maple.h), and its path if that is short enough. No lock
// is taken: a rename on a CPU that was not stopped may give a path that never was. Each
// pointer on the way is checked by ram.h before it is followed, and the path ends at
// the first that is refused. The path is written from its end, since the walk goes up.
#ifndef STACKSHOT_MAPPED_PATH_H
#define STACKSHOT_MAPPED_PATH_H

enum { MAP_PARTS = 8, MAP_PATH_STEPS = 24 };

// put_part puts one component, and the slash before it, before what is there of the path.
// False: there is no room, or the name could not be read. The masks and the asm give the
// verifier a bound on position and length.
static __always_inline bool put_part(struct maple *m, u64 name, u64 len)
{
	u64 pos = m->pos;
	if (len + 4 > pos) // keeps room for the ellipsis
		return 0;
	pos -= len;
	asm volatile("" : "+r"(pos));
	asm volatile("" : "+r"(len));
	if (!follow(m, m->path + (pos & (MAPPED_PATH - 1)), len & (MAPPED_PATH - 1), name))
		return 0;
	pos--;
	asm volatile("" : "+r"(pos));
	m->path[pos & (MAPPED_PATH - 1)] = '/';
	m->pos = pos;
	m->parts++;
	return 1;
}

// put_ellipsis says that the path has more components, and ends the walk. put_part always
// leaves room for its 3 bytes.
static __always_inline void put_ellipsis(struct maple *m)
{
	u64 pos = m->pos - 3;
	asm volatile("" : "+r"(pos));
	char *at = m->path + (pos & (MAPPED_PATH - 1));
	at[0] = 0xe2, at[1] = 0x80, at[2] = 0xa6; // U+2026
	m->pos = pos;
	m->dentry = 0;
	m->cut = 1;
}

// path_step takes one step towards the root: a component, or from a mount's root to the
// place where it is mounted. A mount that is its own parent is the topmost: there the
// path is whole. m->dentry 0 ends the loop.
static long path_step(u32 i, void *unused)
{
	struct maple *m = the_maple();
	if (!m || !m->dentry)
		return 1;
	u64 d = m->dentry, v = m->mount;
	if (d == follow_field(m, vfsmount, v, mnt_root)) {
		u64 at = v - bpf_core_field_offset(((struct mount *)0)->mnt);
		u64 up = follow_field(m, mount, at, mnt_parent);
		m->dentry = 0;
		if (!up || up == at)
			return 1;
		m->dentry = follow_field(m, mount, at, mnt_mountpoint);
		m->mount = up + bpf_core_field_offset(((struct mount *)0)->mnt);
		return 0;
	}
	u64 up = follow_field(m, dentry, d, d_parent);
	u64 name = follow_field(m, dentry, d, d_name.name);
	u32 len = follow_field(m, dentry, d, d_name.len);
	if (m->lost)
		return 1;
	if (m->parts >= MAP_PARTS || !up || !len || !put_part(m, name, len)) {
		put_ellipsis(m);
		return 1;
	}
	m->dentry = up == d ? 0 : up; // its own parent: in no directory (memfd, /dev/zero)
	return 0;
}

// path_start finds where the file is, as /proc/PID/maps shows it. If the file stands for
// another (overlayfs), that is the path that the user named, since "fs: store real path
// instead of fake path in backing file f_path" (def3ae83da02, in 6.8).
enum { FMODE_BACKING_ = 1 << 25 };

static __always_inline void path_start(struct maple *m, u64 f)
{
	u64 at = f + bpf_core_field_offset(((struct file *)0)->f_path);
	u64 inode = follow_field(m, file, f, f_inode);
	if (bpf_core_field_exists(((struct backing_file *)0)->user_path) && (u32)follow_field(m, file, f, f_mode) & FMODE_BACKING_) {
		at = f + bpf_core_field_offset(((struct backing_file *)0)->user_path);
		inode = follow_field(m, dentry, follow_field(m, path, at, dentry), d_inode);
	}
	u64 d = follow_field(m, path, at, dentry);
	m->mount = follow_field(m, path, at, mnt);
	m->inode = follow_field(m, inode, inode, i_ino);
	m->device = follow_field(m, super_block, follow_field(m, inode, inode, i_sb), s_dev);
	u64 hashed = follow_field(m, dentry, d, d_hash.pprev);
	if (!hashed && !m->lost) // as d_unlinked has it
		m->flags |= MAPPING_DELETED;
	m->dentry = m->lost ? 0 : d;
}

// path_of finds what is mapped: a file and its path, the vdso, or anonymous memory. If the
// loop ended before the top, or a pointer was refused, the path begins with an ellipsis.
static __always_inline void path_of(struct maple *m)
{
	u64 f = vma_word(m, vm_file);
	m->flags = MAPPING_IN_WINDOW;
	m->inode = m->device = m->dentry = m->parts = m->lost = m->cut = 0;
	m->pos = MAPPED_PATH;
	if (f)
		path_start(m, f);
	else if (m->vdso && vma_word(m, vm_start) == m->vdso)
		m->flags |= MAPPING_VDSO;
	else
		m->flags |= MAPPING_ANON;
	if (m->dentry)
		bpf_loop(MAP_PATH_STEPS, path_step, 0, 0);
	if ((m->dentry || (m->lost && !m->cut)) && m->pos >= 4)
		put_ellipsis(m);
	if (m->lost)
		m->flags |= MAPPING_UNREAD;
}

#endif
