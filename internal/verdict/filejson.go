package verdict

import (
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/internal/waits"
	"stackshot/kcdata"
)

// FileJSON is the open file that a thread waits at; nil: none.
func FileJSON(x *waits.OpenFile) show.Object {
	if x == nil || x.File == nil {
		return nil
	}
	f := x.File
	o := show.Object{
		{"kind", model.FileKind(f.Kind)}, {"op", model.FileOp(f.Op)}, {"fd", descriptor(f.Fd)}, {"of", x.Of}, {"others", show.Known(x.Others)},
		{"says", show.Known(Word(x.Says))}, {"remote", show.Known(words(x.Remote))}, {"unread", show.Known(x.Unread)},
		{"inode", show.Known(f.Inode)}, {"dev", device(f.Dev)}, {"device", show.Known(words(x.Device))},
	}
	if s := x.Socket; s != nil {
		o = append(o, [2]any{"socket", show.Object{
			{"family", model.SocketFamily(s.Family)}, {"type", s.Kind}, {"local_port", show.Known(s.LocalPort)}, {"peer_port", show.Known(s.PeerPort)},
			{"bytes_in", s.BytesIn}, {"bytes_out", s.BytesOut},
		}})
	}
	return append(o, [2]any{"mount", mountJSON(x.Mount)})
}

func mountJSON(m *kcdata.LinuxMount) show.Object {
	return show.Optional(m, func(m *kcdata.LinuxMount) show.Object {
		return show.Object{
			{"point", show.Known(field(m.Point[:]))}, {"type", show.Known(field(m.FSType[:]))}, {"source", show.Known(field(m.Source[:]))},
		}
	})
}

// descriptor is the number of one; nil: the wait has none.
func descriptor(fd int32) *int32 {
	if fd < 0 {
		return nil
	}
	return &fd
}

// device is a device's number as people write it; nil if it is not known.
func device(dev uint64) *string {
	if dev == 0 {
		return nil
	}
	return show.Known(model.DeviceText(dev))
}
