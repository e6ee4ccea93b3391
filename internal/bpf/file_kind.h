// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What an open file is (kcdata.File* kinds), by what is read of its inode and its name: the same
// for the window (wait_object.h) and for the pass after it (ends_file.h), which read it in
// different ways.
#ifndef STACKSHOT_FILE_KIND_H
#define STACKSHOT_FILE_KIND_H

// include/uapi/linux/stat.h, magic.h.
enum { IFMT = 0170000, IFIFO = 0010000, IFCHR = 0020000, IFDIR = 0040000, IFBLK = 0060000, IFREG = 0100000, IFSOCK = 0140000 };
enum { MAGIC_PIPE = 0x50495045, MAGIC_SOCK = 0x534F434B, MAGIC_ANON = 0x09041934, MAGIC_PIDFD = 0x50494446 };
// Documentation/admin-guide/devices.txt.
enum { MAJOR_TTY = 4, MAJOR_TTYAUX = 5, MAJOR_MISC = 10, MAJOR_PTM = 128, MAJOR_PTS = 136, MAJOR_PTS_END = 144, MINOR_PTMX = 2, MINOR_FUSE = 229 };

// dev_of is a device number as the file has it, major<<32 | minor: the kernel keeps 12 bits and 20
// (MKDEV, include/linux/kdev_t.h).
static __always_inline u64 dev_of(u32 d) { return (u64)(d >> 20) << 32 | (d & 0xfffff); }

// anon_kind tells anonymous inodes by the first eight bytes of their names.
static __always_inline u32 anon_kind(u64 name)
{
	switch (name) {
	case 0x6f70746e6576655bull: return FILE_EPOLL;       // "[eventpo"
	case 0x6466746e6576655bull: return FILE_EVENTFD;     // "[eventfd"
	case 0x646672656d69745bull: return FILE_TIMERFD;     // "[timerfd"
	case 0x666c616e6769735bull: return FILE_SIGNALFD;    // "[signalf"
	case 0x00796669746f6e69ull: return FILE_INOTIFY;     // "inotify"
	case 0x756166726573755bull: return FILE_USERFAULTFD; // "[userfau"
	case 0x6669746f6e61665bull: return FILE_FANOTIFY;    // "[fanotif"
	case 0x6e6972755f6f695bull: return FILE_IO_URING;    // "[io_urin"
	case 0x005d64666469705bull: return FILE_PIDFD;       // "[pidfd]"
	}
	return FILE_OTHER;
}

static __always_inline u32 plain_kind(u32 mode)
{
	switch (mode & IFMT) {
	case IFREG: return FILE_REGULAR;
	case IFDIR: return FILE_DIRECTORY;
	case IFBLK: return FILE_BLOCK;
	case IFCHR: return FILE_CHAR;
	case IFIFO: return FILE_FIFO;
	case IFSOCK: return FILE_SOCKET;
	}
	return FILE_OTHER;
}

// char_kind tells character devices by their number (dev_of).
static __always_inline u32 char_kind(u64 rdev)
{
	u32 major = rdev >> 32, minor = rdev;
	if (major == MAJOR_MISC && minor == MINOR_FUSE)
		return FILE_FUSE;
	if ((major >= MAJOR_PTM && major < MAJOR_PTS) || (major == MAJOR_TTYAUX && minor == MINOR_PTMX))
		return FILE_PT_MASTER;
	return major == MAJOR_TTY || major == MAJOR_TTYAUX || (major >= MAJOR_PTS && major < MAJOR_PTS_END) ? FILE_TERMINAL : FILE_CHAR;
}

#endif
