package model

import (
	"testing"

	"stackshot/kcdata"
)

func TestFileNames(t *testing.T) {
	if len(fileKinds) != kcdata.FileIOUring+1 || len(fileOps) != kcdata.FileOpClose+1 {
		t.Error("a kind or a call has no name")
	}
	seen := map[string]bool{}
	for _, names := range [][]string{fileKinds[:], fileOps[1:]} {
		for _, n := range names {
			if n == "" || seen[n] && n != "epoll" {
				t.Errorf("name %q", n)
			}
			seen[n] = true
		}
	}
	if FileKind(1<<31) != "unknown" || FileOp(14) != "unknown" || FileKind(kcdata.FilePipe) != "pipe" || FileOp(kcdata.FileOpFlock) != "flock" {
		t.Error("names of numbers")
	}
}

func TestSocketAddress(t *testing.T) {
	v4, mapped, v6 := [16]byte{192, 0, 2, 7}, [16]byte{10: 0xff, 11: 0xff, 12: 192, 13: 0, 14: 2, 15: 7}, [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}
	for _, c := range []struct {
		family uint16
		addr   [16]byte
		port   uint16
		want   string
	}{
		{2, v4, 80, "192.0.2.7:80"}, {10, mapped, 80, "192.0.2.7:80"}, {10, v4, 80, "192.0.2.7:80"}, {10, v6, 443, "[2001:db8::1]:443"},
		{10, [16]byte{}, 22, "[::]:22"}, {2, [16]byte{}, 22, "0.0.0.0:22"}, {10, [16]byte{15: 1}, 9, "[::1]:9"}, {2, [16]byte{}, 0, ""}, {1, v4, 80, ""},
	} {
		if got := SocketAddress(c.family, c.addr, c.port); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if SocketFamily(1) != "unix" || SocketFamily(99) != "99" || DeviceText(254<<32|3) != "254:3" {
		t.Error("a family, or a device")
	}
}
