package report

import (
	"bytes"

	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// jsonFiles are the open files at which a thread waits; nil if there are none. A socket follows
// its file in the file's own order (kcdata.LinuxSocket).
func jsonFiles(t *kcdata.Thread) []show.Object {
	if len(t.Files) == 0 {
		return nil
	}
	sockets := t.Sockets
	return show.List(t.Files, func(f *kcdata.LinuxFile) show.Object {
		var s *kcdata.LinuxSocket
		if f.Kind == kcdata.FileSocket && len(sockets) > 0 && sockets[0].Fd == f.Fd {
			s, sockets = &sockets[0], sockets[1:]
		}
		return jsonFile(f, s)
	})
}

func jsonFile(f *kcdata.LinuxFile, s *kcdata.LinuxSocket) show.Object {
	var device, rdev *string
	if f.Flags&(kcdata.FileClosed|kcdata.FileUnread) == 0 {
		device = show.Known(model.DeviceText(f.Dev))
	}
	if f.Rdev != 0 {
		rdev = show.Known(model.DeviceText(f.Rdev))
	}
	name, _, _ := bytes.Cut(f.Name[:], []byte{0})
	o := show.Object{
		{"fd", f.Fd}, {"kind", model.FileKind(f.Kind)}, {"op", model.FileOp(f.Op)}, {"flags", some(model.FileFlags.Names(f.Flags))}, {"name", cleaned(string(name))},
		{"object", known(f.Object)}, {"peer", known(f.Peer)}, {"file", known(f.File)}, {"inode", show.Known(f.Inode)}, {"device", device}, {"rdev", rdev},
		{"magic", known(f.Magic)}, {"mode", show.Known(f.Mode)}, {"open_flags", show.Known(f.OFlags)}, {"events", show.Known(f.Events)}, {"bytes", show.Known(f.Bytes)},
	}
	switch f.Kind {
	case kcdata.FilePipe, kcdata.FileFIFO:
		o = append(o, show.Object{{"room", f.Room}, {"readers", f.Readers}, {"writers", f.Writers}}...)
	}
	switch f.Op {
	case kcdata.FileOpFlock:
		o = append(o, [2]any{"lock_how", f.LockHow})
	case kcdata.FileOpPOSIX, kcdata.FileOpOFD:
		o = append(o, show.Object{{"lock_how", f.LockHow}, {"lock_start", f.LockStart}, {"lock_len", f.LockLen}}...)
	}
	return append(o, [2]any{"socket", show.Optional(s, jsonSocket)})
}

// known is an address, or its number in a redacted file; nil for 0.
func known(v uint64) *addr {
	if v == 0 {
		return nil
	}
	a := addr(v)
	return &a
}

func jsonSocket(s *kcdata.LinuxSocket) show.Object {
	return show.Object{
		{"family", model.SocketFamily(s.Family)}, {"type", s.Kind}, {"protocol", s.Protocol}, {"tcp_state", s.State}, {"flags", some(model.SocketFlags.Names(s.Flags))},
		{"local", show.Known(model.SocketAddress(s.Family, s.Local, s.LocalPort))}, {"remote", show.Known(model.SocketAddress(s.Family, s.Remote, s.PeerPort))},
		{"netns", show.Known(s.NetNS)}, {"inode", show.Known(s.Inode)}, {"peer_inode", show.Known(s.PeerInode)}, {"peer_tgid", show.Known(s.PeerTgid)},
		{"bytes_in", s.BytesIn}, {"bytes_out", s.BytesOut}, {"backlog", show.Known(s.Backlog)}, {"backlog_max", show.Known(s.BacklogTo)}, {"error", show.Known(s.Error)},
	}
}
