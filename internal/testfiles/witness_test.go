//go:build linux

package testfiles

import (
	"net/netip"
	"reflect"
	"testing"

	"stackshot/internal/testneed"
)

// What the programs of Debian 12 print is read.
func TestReaders(t *testing.T) {
	testneed.Live(t)
	rows, err := parseLsfd([]byte(`{"lsfd": [{"pid":7,"fd":null,"type":"REG","mode":"---","inode":2,"dev":"254:0","name":"/usr/bin/sleep"},
		{"pid":7,"fd":3,"type":"FIFO","mode":"-w-","inode":21697,"dev":"0:15","name":"pipe:[21697]"}]}`))
	if want := []Descriptor{{7, 3, "FIFO", "-w-", 21697, 15, "pipe:[21697]"}}; err != nil || !reflect.DeepEqual(rows, want) {
		t.Errorf("lsfd: %+v, %v", rows, err)
	}
	sockets, err := parseSs([]byte(`u_str LISTEN 0 128 /run/dbus 1100 * 0 users:(("dbus",pid=4,fd=3),("systemd",pid=1,fd=44))
u_dgr ESTAB 5      0                  * 20644            * 20643 users:(("my prog",pid=13001,fd=4))
tcp   ESTAB  0      7        [::1]:46064   [::1]:36661 users:(("python3",pid=13001,fd=6)) ino:20646 sk:1003 cgroup:/ <->
tcp   LISTEN 0 5 *:80 *:* ino:9 sk:1
udp UNCONN 0      0      [::ffff:127.0.0.53]%lo:53 0.0.0.0:* users:(("r",pid=8,fd=8)) ino:20648 sk:3 cgroup:/
`))
	loop := netip.MustParseAddrPort
	want := []Socket{
		{Netid: "u_str", State: "LISTEN", Out: 128, Inode: 1100, Users: []User{{4, 3}, {1, 44}}},
		{Netid: "u_dgr", State: "ESTAB", In: 5, Inode: 20644, Peer: 20643, Users: []User{{13001, 4}}},
		{Netid: "tcp", State: "ESTAB", Out: 7, Inode: 20646, Local: loop("[::1]:46064"), Remote: loop("[::1]:36661"), Users: []User{{13001, 6}}},
		{Netid: "tcp", State: "LISTEN", Out: 5, Inode: 9, Local: netip.AddrPortFrom(netip.Addr{}, 80)},
		{Netid: "udp", State: "UNCONN", Inode: 20648, Local: loop("127.0.0.53:53"), Remote: loop("0.0.0.0:0"), Users: []User{{8, 8}}},
	}
	if err != nil || len(sockets) != len(want) {
		t.Fatalf("ss: %+v, %v", sockets, err)
	}
	for i, s := range sockets {
		if !reflect.DeepEqual(s, want[i]) {
			t.Errorf("ss: %+v, want %+v", s, want[i])
		}
	}
}

// What is cut or odd is an error, not an empty answer.
func TestReadersRefuse(t *testing.T) {
	testneed.Live(t)
	if _, err := parseLsfd([]byte(`{"lsfd": [{"pid":7,"fd":3,"dev":"254"}]}`)); err == nil {
		t.Error("lsfd")
	}
	for _, line := range []string{"u_str LISTEN 0 128\n", "u_str LISTEN 0 128 /a b c 1 * 0\n", "tcp ESTAB x 0 1.2.3.4:5 1.2.3.4:6\n"} {
		if _, err := parseSs([]byte(line)); err == nil {
			t.Error("ss", line)
		}
	}
}

// The witnesses agree with the fixture: what it says of ends is so.
func TestWitnessesKnowTheFixture(t *testing.T) {
	testneed.Live(t)
	f := Start(t)
	rows := map[User]Descriptor{}
	for _, d := range Lsfd(t, f.A.Pid, f.B.Pid, f.Waiter.Pid) {
		rows[User{d.Pid, d.Fd}] = d
	}
	of := map[User]Socket{}
	for _, s := range Sockets(t) {
		for _, u := range s.Users {
			of[u] = s
		}
	}
	for _, w := range f.Waits {
		for _, file := range w.File {
			near, ok := rows[User{w.Pid, file.Fd}]
			if !ok {
				t.Errorf("%s: lsfd does not have %d", w.Name, file.Fd)
			}
			for _, e := range file.Ends {
				u := User{e.Process.Pid, e.Fd}
				far := rows[u]
				a, b := of[User{w.Pid, file.Fd}], of[u]
				switch {
				case near.Type == "SOCK" && b.Inode != 0 && a.Inode == far.Inode:
					t.Errorf("%s: %+v is the same socket as %+v", w.Name, a, b)
				case near.Type == "SOCK" && a.Netid[:2] == "u_" && b.State != "LISTEN" && a.Peer != b.Inode && b.Peer != a.Inode:
					t.Errorf("%s: ss has %+v and %+v", w.Name, a, b)
				case near.Type == "SOCK" && a.Local.IsValid() && b.State != "LISTEN" && (a.Local != b.Remote || a.Remote != b.Local):
					t.Errorf("%s: ss has %+v and %+v", w.Name, a, b)
				case near.Type != "SOCK" && near.Inode != far.Inode && near.Type != "CHR":
					t.Errorf("%s: lsfd has %+v and %+v", w.Name, near, far)
				}
			}
		}
	}
}
