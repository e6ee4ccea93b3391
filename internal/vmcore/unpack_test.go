package vmcore

import (
	"bytes"
	"os/exec"
	"strconv"
	"testing"

	"stackshot/internal/testneed"
)

// Pages that the zstd library packed at level 1, as makedumpfile -z has it do. The frame has the page's size if the
// writer told it beforehand, which makedumpfile does.
func TestUnpackZstdOfTheLibrary(t *testing.T) {
	testneed.Live(t)
	testneed.Program(t, "zstd")
	r := rng(t, 1)
	for _, size := range []int{4096, 65536} {
		u := &unpacker{}
		for i := range 10 {
			page, out := randomPage(r, size), make([]byte, size)
			cmd := exec.Command("zstd", "-1", "-q", "-c", "--no-check")
			if i%2 == 0 {
				cmd.Args = append(cmd.Args, "--stream-size="+strconv.Itoa(size))
			}
			cmd.Stdin = bytes.NewReader(page)
			packed, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if err := u.unpack(out, packed, byZstd); err != nil || !bytes.Equal(out, page) {
				t.Errorf("page of %d bytes: %v", size, err)
			}
		}
	}
}
