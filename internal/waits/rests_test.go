package waits

import (
	"testing"

	"stackshot/internal/model"
	"stackshot/kcdata"
)

// Each kind either rests or does not, in D or not; a time-out and the next request always do.
func TestRests(t *testing.T) {
	asleep, inD := model.State{Class: model.Sleeping}, model.State{Class: model.Blocked}
	rests := map[Kind]bool{AtRest: true, Timer: true, Signal: true, ChildEnd: true, Poll: true, Terminal: true, Descriptor: true, Netlink: true, IOUring: true, IPC: true,
		VirtualCPU: true, UserCondvar: true, UserSemaphore: true, UserPark: true, UserJoin: true, UserBarrier: true, JavaNotify: true, GoRuntime: true, Futex: true, Pipe: true, Socket: true}
	for _, k := range Kinds() {
		if got := (&Wait{Kind: k, State: asleep}).Rests(); got != rests[k] {
			t.Errorf("%s asleep: %v", k, got)
		}
		if got := (&Wait{Kind: k, State: inD}).Rests(); got != (k == AtRest || k == Vfork || k == Timer) {
			t.Errorf("%s in D: %v", k, got)
		}
		if !(&Wait{Kind: k, State: asleep, Timed: true}).Rests() || !(&Wait{Kind: k, State: asleep, File: &OpenFile{Says: Serves}}).Rests() {
			t.Errorf("%s with a time-out, or for the next request, does not rest", k)
		}
	}
	at := func(k Kind, flags uint32, says FileSays, owners ...Owner) *Wait {
		return &Wait{Kind: k, State: asleep, Owners: owners, File: &OpenFile{File: &kcdata.LinuxFile{Flags: flags}, Says: says}}
	}
	for name, c := range map[string]struct {
		w    *Wait
		want bool
	}{
		"a pipe, to read":                {at(Pipe, kcdata.FileToRead, ""), true},
		"a pipe, to write":               {at(Pipe, kcdata.FileToWrite, ""), false},
		"a socket, another machine":      {at(Socket, kcdata.FileToRead, Elsewhere), false},
		"a socket, somebody has the end": {at(Socket, kcdata.FileToRead, "", Owner{}), false},
		"a socket, nobody was found":     {at(Socket, kcdata.FileToRead, NotFound), true},
	} {
		if got := c.w.Rests(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
