package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// A thread's open files stand in the JSON, each socket with its own file; what is not known has no key.
func TestJSONFiles(t *testing.T) {
	th := &kcdata.Thread{ID: 70, Files: []kcdata.LinuxFile{
		{Fd: 3, Kind: kcdata.FilePipe, Op: kcdata.FileOpRead, Flags: kcdata.FileToRead | kcdata.FileStill, Object: 0xffff888000001000, Inode: 7, Dev: 15, Writers: 1},
		{Fd: 4, Kind: kcdata.FileSocket, Op: kcdata.FileOpPoll}, // its socket is not in the file
		{Fd: 5, Kind: kcdata.FileSocket, Op: kcdata.FileOpPoll, Name: [24]byte{'['}},
		{Fd: 6, Kind: kcdata.FileRegular, Op: kcdata.FileOpOFD, LockLen: 9, Flags: kcdata.FileClosed},
	}, Sockets: []kcdata.LinuxSocket{{Fd: 5, Family: 2, Local: [16]byte{127, 0, 0, 1}, LocalPort: 80}}}
	s := &kcdata.Snapshot{Tasks: []*kcdata.Task{{ID: 70, Threads: []*kcdata.Thread{th}}}}
	var b bytes.Buffer
	if err := JSON(&b, s, Options{}); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Tasks []struct {
			Threads []struct{ Files []json.RawMessage }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"fd":3,"kind":"pipe","op":"read","flags":["to_read","still"],"object":"0xffff888000001000","inode":7,"device":"0:15","room":0,"readers":0,"writers":1}`,
		`{"fd":4,"kind":"socket","op":"poll","device":"0:0"}`,
		`{"fd":5,"kind":"socket","op":"poll","name":"[","device":"0:0","socket":{"family":"inet","type":0,"protocol":0,"tcp_state":0,"local":"127.0.0.1:80","bytes_in":0,"bytes_out":0}}`,
		`{"fd":6,"kind":"regular","op":"ofd_lock","flags":["closed"],"lock_how":0,"lock_start":0,"lock_len":9}`,
	}
	got := d.Tasks[0].Threads[0].Files
	if len(got) != len(want) {
		t.Fatalf("%s", got)
	}
	for i := range got {
		var one bytes.Buffer
		if json.Compact(&one, got[i]); one.String() != want[i] {
			t.Errorf("%s\n%s", one.String(), want[i])
		}
	}
	th.Files = nil
	b.Reset()
	if err := JSON(&b, s, Options{}); err != nil || strings.Contains(b.String(), `"files"`) {
		t.Errorf("%v: no open files, and a key for them", err)
	}
}
