package bpf

import (
	"reflect"
	"testing"
	"unsafe"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

var endsObjects = map[string]string{
	"amd64": "endsobject_x86_bpfel.o", "arm64": "endsobject_arm64_bpfel.o",
	"amd64, tests": "bpftest/ends_x86_bpfel.o", "arm64, tests": "bpftest/ends_arm64_bpfel.o",
}

// What the pass writes is what kcdata says of the records, byte for byte.
func TestEndRecordLayout(t *testing.T) {
	testneed.Live(t)
	for arch, object := range endsObjects {
		types := typesOf(t, object)
		for name, id := range map[string]kcdata.Type{"linux_end": kcdata.TypeLinuxEnd, "linux_fuse": kcdata.TypeLinuxFUSE} {
			spec, ok := kcdata.Lookup(id)
			if !ok {
				t.Fatalf("type %#x has no spec", uint32(id))
			}
			var want []member
			for _, f := range spec.Fields {
				want = append(want, member{f.Name, f.Offset, f.Elem, f.Count})
			}
			s := structOf(t, types, name)
			if got := membersOf(t, s); !reflect.DeepEqual(got, want) || int(s.Size) != spec.Size() {
				t.Errorf("%s: struct %s, %d bytes\nC    %+v\nspec %+v, %d bytes", arch, name, s.Size, got, want, spec.Size())
			}
		}
		for name, size := range map[string]uintptr{"end_out": unsafe.Sizeof(endOut{}), "fuse_out": unsafe.Sizeof(fuseOut{})} {
			s := structOf(t, types, name)
			if uintptr(s.Size) != size || s.Members[2].Offset.Bytes() != 8 {
				t.Errorf("%s: struct %s has %d bytes, Go %d", arch, name, s.Size, size)
			}
		}
	}
	sameLayout(t, endsObjects, []string{"ends_ask", "end_key", "end_wanted", "thread_key", "thread_asked"})
}

// endsConstants are what both sides name, C's first.
var endsConstants = map[string]uint64{
	"END_READS": kcdata.EndReads, "END_WRITES": kcdata.EndWrites, "END_LISTENS": kcdata.EndListens, "END_LOCKS": kcdata.EndLocks,
	"END_PAIR": kcdata.EndPair, "END_SAME": kcdata.EndSame, "END_PEER": kcdata.EndPeer, "END_ACCEPTS": kcdata.EndAccepts, "END_SERVES": kcdata.EndServes, "END_ROOM": kcdata.EndRoom,
	"FILE_LOCK_FLOCK": kcdata.FileLockFlock, "FILE_LOCK_POSIX": kcdata.FileLockPOSIX, "FILE_LOCK_OFD": kcdata.FileLockOFD,
	"FUSE_SENT": kcdata.FUSESent, "FUSE_FOREIGN": kcdata.FUSEForeign,
	"BY_OBJECT": byObject, "BY_PEER": byPeer, "BY_FILE": byFile, "BY_PAIR": byPair, "BY_PORT": byPort, "BY_SERVER": byPort + 1, "BY_ROOM": byRoom,
	"ASK_LOCKS": askLocks, "ASK_INET": askInet, "ASK_USERFAULTFD": askUserfaultfd, "ASK_PEERS": askPeers, "ASK_UNIX": askUnix, "ASK_ROOM": askRoom,
	"THREAD_SEEN": threadSeen, "THREAD_STILL": threadStill, "THREAD_CATCHES": threadCatches,
	"OUT_END": outEnd, "OUT_FUSE": outFUSE,
}

func TestEndConstantsOfCAndGo(t *testing.T) {
	testneed.Live(t)
	sameConstants(t, endsObjects, "all_ends", endsConstants)
}
