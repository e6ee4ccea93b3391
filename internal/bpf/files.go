package bpf

import (
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"stackshot/kcdata"
)

// MaxFiles is how many open files of one call are recorded (wait_call.h, WAIT_FILES).
const MaxFiles = 16

// nowhere is a place that this kernel does not have.
const nowhere = ^uint32(0)

// place is one of the programs' places (wait_call.h, enum file_place): the offset of a
// field, or of a structure in another. A name "()" is the size of the structure, and "a|b" are
// names of several releases. need are the kcdata.FilesHas* bits that a kernel without it
// does not have.
type place struct {
	name, at string
	need     uint32
}

const placeCount = len(placeNames)

const table, unixEnds, terminals, epolls = kcdata.FilesHasTable, kcdata.FilesHasUnix, kcdata.FilesHasTTY, kcdata.FilesHasEpoll

// placeNames are all of them, in the programs' order.
var placeNames = [...]place{
	{"P_FILES_FDT", "files_struct fdt", table},
	{"P_FDT_MAX", "fdtable max_fds", table},
	{"P_FDT_FD", "fdtable fd", table},
	{"P_FDT_EXEC", "fdtable close_on_exec", table},
	{"P_FDT_OPEN", "fdtable open_fds", table},
	{"P_FILE_INODE", "file f_inode", table},
	{"P_FILE_PRIVATE", "file private_data", table},
	{"P_FILE_FLAGS", "file f_flags", table},
	{"P_FILE_DENTRY", "file f_path dentry", table},
	{"P_DENTRY_NAME", "dentry d_name name", table},
	{"P_INODE_MODE", "inode i_mode", table},
	{"P_INODE_SB", "inode i_sb", table},
	{"P_INODE_INO", "inode i_ino", table},
	{"P_INODE_RDEV", "inode i_rdev", table},
	{"P_SB_DEV", "super_block s_dev", table},
	{"P_SB_MAGIC", "super_block s_magic", table},
	{"P_PIPE_HEAD", "pipe_inode_info head", table},
	{"P_PIPE_TAIL", "pipe_inode_info tail", table},
	{"P_PIPE_USAGE", "pipe_inode_info max_usage", table},
	{"P_PIPE_RING", "pipe_inode_info ring_size", table},
	{"P_PIPE_READERS", "pipe_inode_info readers", table},
	{"P_PIPE_WRITERS", "pipe_inode_info writers", table},
	{"P_PIPE_BUFS", "pipe_inode_info bufs", table},
	{"P_BUF_LEN", "pipe_buffer len", table},
	{"P_BUF_SIZE", "pipe_buffer ()", table},
	{"P_SOCKET_SK", "socket sk", table},
	{"P_SOCKET_INODE", "socket_alloc vfs_inode", table},
	{"P_SK_DADDR", "sock_common skc_daddr", 0},
	{"P_SK_RCV_SADDR", "sock_common skc_rcv_saddr", 0},
	{"P_SK_DPORT", "sock_common skc_dport", table},
	{"P_SK_NUM", "sock_common skc_num", table},
	{"P_SK_FAMILY", "sock_common skc_family", table},
	{"P_SK_STATE", "sock_common skc_state", table},
	{"P_SK_NET", "sock_common skc_net net", 0},
	{"P_NET_INUM", "net ns inum", 0},
	{"P_SK_V6_DADDR", "sock_common skc_v6_daddr", 0},
	{"P_SK_V6_RCV_SADDR", "sock_common skc_v6_rcv_saddr", 0},
	{"P_SK_QUEUE", "sock sk_receive_queue", table},
	{"P_SK_QLEN", "sk_buff_head qlen", table},
	{"P_SK_RCVTIMEO", "sock sk_rcvtimeo", table},
	{"P_SK_SNDTIMEO", "sock sk_sndtimeo", table},
	{"P_SK_ERR", "sock sk_err", table},
	{"P_SK_SOCKET", "sock sk_socket", table},
	{"P_SK_WMEM", "sock sk_wmem_alloc", table},
	{"P_SK_PROTOCOL", "sock sk_protocol", table},
	{"P_SK_TYPE", "sock sk_type", table},
	{"P_SK_SHUTDOWN", "sock sk_shutdown", table},
	{"P_SK_BACKLOG", "sock sk_ack_backlog", table},
	{"P_SK_BACKLOG_MAX", "sock sk_max_ack_backlog", table},
	{"P_SK_PEER_PID", "sock sk_peer_pid", table},
	{"P_SKB_LEN", "sk_buff len", table},
	{"P_SKB_CB", "sk_buff cb", table},
	{"P_TCP_COPIED", "tcp_sock copied_seq", 0},
	{"P_TCP_RCV_NXT", "tcp_sock rcv_nxt", 0},
	{"P_TCP_WRITE_SEQ", "tcp_sock write_seq", 0},
	{"P_TCP_SND_UNA", "tcp_sock snd_una", 0},
	{"P_UNIX_PEER", "unix_sock peer", unixEnds},
	{"P_UNIX_ADDR", "unix_sock addr", 0},
	{"P_UNIX_CONSUMED", "unix_skb_parms consumed", 0},
	{"P_TFP_TTY", "tty_file_private tty", terminals},
	{"P_TTY_LINK", "tty_struct link", terminals},
	{"P_TTY_DISC", "tty_struct disc_data", terminals},
	{"P_TTY_LFLAG", "tty_struct termios c_lflag", terminals},
	{"P_TTY_LINE", "tty_struct termios c_line", terminals},
	{"P_NTTY_HEAD", "n_tty_data read_head", terminals},
	{"P_NTTY_CANON", "n_tty_data canon_head", terminals},
	{"P_NTTY_TAIL", "n_tty_data read_tail", terminals},
	{"P_EVENTFD_COUNT", "eventfd_ctx count", 0},
	{"P_TIMERFD_TICKS", "timerfd_ctx ticks", 0},
	{"P_EP_ROOT", "eventpoll rbr", epolls},
	{"P_EPI_NODE", "epitem rbn", epolls},
	{"P_EPI_FILE", "epitem ffd|key file", epolls},
	{"P_EPI_FD", "epitem ffd|key fd", epolls},
	{"P_EPI_EVENTS", "epitem event events", epolls},
	{"P_NODE_LEFT", "rb_node rb_left", epolls},
	{"P_NODE_RIGHT", "rb_node rb_right", epolls},
	{"P_FUSE_DEV_CONN", "fuse_dev fc", 0},
	{"P_FUSE_DEV_CHAN", "fuse_dev chan", 0},
	{"P_FUSE_CHAN_CONN", "fuse_chan conn", 0},
}

// moduleOf says which module has a type on kernels that do not have it built in.
var moduleOf = map[string]string{
	"unix_sock": "unix", "unix_skb_parms": "unix", "fuse_dev": "fuse", "fuse_chan": "fuse",
}

// filePlaces finds the programs' places in a kernel's types. modules gives those of a
// module, nil if there are none.
func filePlaces(types *btf.Spec, modules func(string) *btf.Spec) (at [placeCount]uint32) {
	read := map[string]*btf.Spec{} // of a module: decoding is not for free
	for i, p := range placeNames {
		at[i] = nowhere
		path := strings.Fields(p.at)
		if off, ok := placeIn(types, path); ok {
			at[i] = off
			continue
		}
		m := moduleOf[path[0]]
		if m == "" {
			continue
		}
		if _, ok := read[m]; !ok {
			read[m] = modules(m)
		}
		if off, ok := placeIn(read[m], path); ok {
			at[i] = off
		}
	}
	return at
}

func placeIn(types *btf.Spec, path []string) (at uint32, ok bool) {
	var s *btf.Struct
	if types == nil || types.TypeByName(path[0], &s) != nil {
		return 0, false
	}
	if path[1] == "()" {
		return s.Size, true
	}
	typ := btf.Type(s)
	for _, names := range path[1:] {
		var off uint32
		found := false
		for _, name := range strings.Split(names, "|") {
			if m, o, has := memberIn(typ, name); has && !found {
				typ, off, found = m, o, true
			}
		}
		if !found {
			return 0, false
		}
		at += off
	}
	return at, true
}

// memberIn finds a member, in unnamed members too.
func memberIn(typ btf.Type, name string) (btf.Type, uint32, bool) {
	var list []btf.Member
	switch s := btf.UnderlyingType(typ).(type) {
	case *btf.Struct:
		list = s.Members
	case *btf.Union:
		list = s.Members
	}
	for _, m := range list {
		if m.Name == name {
			return m.Type, m.Offset.Bytes(), true
		}
		if m.Name == "" {
			if in, off, ok := memberIn(m.Type, name); ok {
				return in, m.Offset.Bytes() + off, true
			}
		}
	}
	return nil, 0, false
}

// moduleTypes are the types of a module of the running kernel; nil: it is not loaded, or
// has none, or there is no name.
func moduleTypes(module string) *btf.Spec {
	if module == "" {
		return nil
	}
	types, err := running.now().Module(module)
	if err != nil {
		return nil
	}
	return types
}

// fileSources are the kcdata.FilesHas* bits of a kernel with these places.
func fileSources(at [placeCount]uint32) uint32 {
	has := uint32(table | unixEnds | terminals | epolls)
	for i, p := range placeNames {
		if at[i] == nowhere {
			has &^= p.need
		}
	}
	if has&table == 0 {
		return 0
	}
	return has
}

// setFiles tells the programs of open files. What they would know in part only they do not
// read.
func setFiles(spec *ebpf.CollectionSpec, types *btf.Spec) error {
	at := filePlaces(types, moduleTypes)
	has := fileSources(at)
	for i, p := range placeNames {
		if has&p.need != p.need {
			at[i] = nowhere
		}
	}
	return setValues(spec, map[string]any{
		"cfg_files": Flag(has != 0), "cfg_calls": callTable(), "cfg_socketcalls": socketcallTable(), "cfg_place": at,
	})
}
