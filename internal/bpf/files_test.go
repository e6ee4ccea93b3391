package bpf

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"

	"stackshot/internal/sysno"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// The programs know places and ways by their numbers.
func TestPlacesOfCAndGo(t *testing.T) {
	testneed.Live(t)
	ways := map[string]uint64{"WAY_ONE": wayOne, "WAY_TWO": wayTwo, "WAY_SPLICE": waySplice, "WAY_POLL": wayPoll, "WAY_SELECT": waySelect,
		"WAY_EPOLL": wayEpoll, "WAY_FLOCK": wayFlock, "WAY_FCNTL": wayFcntl, "WAY_SOCKETCALL": waySocketcall}
	for arch, object := range objects {
		all := structOf(t, typesOf(t, object), "all_places")
		places, ok := btf.As[*btf.Enum](all.Members[0].Type)
		if !ok || len(places.Values) != placeCount+1 {
			t.Fatalf("%s: %d places in C, %d in Go", arch, len(places.Values)-1, placeCount)
		}
		for i, p := range placeNames {
			if v := places.Values[i]; v.Name != p.name || v.Value != uint64(i) {
				t.Errorf("%s: place %d is %s in C, %s in Go", arch, i, v.Name, p.name)
			}
		}
		found := 0
		way, _ := btf.As[*btf.Enum](all.Members[1].Type)
		for _, v := range way.Values {
			if want, ok := ways[v.Name]; ok {
				found++
				if v.Value != want {
					t.Errorf("%s: %s is %d in C, %d in Go", arch, v.Name, v.Value, want)
				}
			}
		}
		if found != len(ways) {
			t.Errorf("%s: %d ways of %d", arch, found, len(ways))
		}
	}
}

// Every name in the table is that of a call, in one of the four ABIs.
func TestCallsHaveNames(t *testing.T) {
	known := map[string]bool{}
	for _, machine := range []string{"amd64", "arm64"} {
		for abi := range sysno.Unknown {
			for nr := range fileCalls {
				if name, ok := sysno.Name(machine, abi, int64(nr)); ok {
					known[name] = true
				}
			}
		}
	}
	for name := range callShapes {
		if !known[name] && name != "send" && name != "recv" {
			t.Errorf("%s is no call", name)
		}
	}
	for nr, name := range socketcallNumbers {
		if nr >= socketCalls || callShapes[name].Way == 0 {
			t.Errorf("socketcall %d: %s", nr, name)
		}
	}
}

// Fields with other names, in unnamed members and in modules; and a kernel without them.
func TestPlacesOfKernels(t *testing.T) {
	word := &btf.Int{Name: "long", Size: 8}
	in := func(members ...btf.Member) *btf.Struct { return &btf.Struct{Size: 64, Members: members} }
	named := func(name string, s *btf.Struct) *btf.Struct { s.Name = name; return s }
	kernel := specOf(t, named("epitem", in(btf.Member{Name: "key", Offset: 8 * 8, Type: in(btf.Member{Name: "file", Type: word}, btf.Member{Name: "fd", Offset: 64, Type: word})})),
		named("pipe_inode_info", in(btf.Member{Offset: 8 * 8, Type: in(btf.Member{Name: "head", Type: word}, btf.Member{Name: "tail", Offset: 32, Type: word})})))
	module := specOf(t, named("unix_sock", in(btf.Member{Name: "peer", Offset: 8 * 24, Type: word})))
	at := filePlaces(kernel, func(name string) *btf.Spec {
		if name == "unix" {
			return module
		}
		return nil
	})
	want := map[string]uint32{"P_EPI_FILE": 8, "P_EPI_FD": 16, "P_PIPE_HEAD": 8, "P_PIPE_TAIL": 12, "P_UNIX_PEER": 24}
	for i, p := range placeNames {
		w, ok := want[p.name]
		if !ok {
			w = nowhere
		}
		if at[i] != w {
			t.Errorf("%s is at %d, want %d", p.name, int32(at[i]), int32(w))
		}
	}
	if got := fileSources(at); got != 0 {
		t.Errorf("sources %#x of a kernel without most fields", got)
	}
	at = [placeCount]uint32{}
	if got := fileSources(at); got != kcdata.FilesHasTable|kcdata.FilesHasUnix|kcdata.FilesHasEpoll|kcdata.FilesHasTTY {
		t.Errorf("sources %#x of a kernel with all", got)
	}
	for i, p := range placeNames {
		if p.name == "P_UNIX_PEER" {
			at[i] = nowhere
		}
	}
	if got := fileSources(at); got != kcdata.FilesHasTable|kcdata.FilesHasEpoll|kcdata.FilesHasTTY {
		t.Errorf("sources %#x of a kernel without unix sockets", got)
	}
}

func specOf(t *testing.T, types ...*btf.Struct) *btf.Spec {
	t.Helper()
	list := []btf.Type{}
	for _, s := range types {
		list = append(list, s)
	}
	b, err := btf.NewBuilder(list, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}
