package snapshot

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Edits in any order give what is got by making them from the back.
func TestEditsOfATask(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		body := make([]byte, itemHeader+rng.IntN(200))
		for i := range body {
			body[i] = byte(i)
		}
		task := &taskBytes{body: body}
		var edits []edit
		for off := itemHeader; off < len(body); {
			off += rng.IntN(30)
			cut := min(rng.IntN(10), max(len(body)-off, 0))
			if off > len(body) {
				break
			}
			edits = append(edits, edit{off, cut, bytes.Repeat([]byte{0xee}, rng.IntN(8))})
			off += max(cut, 1)
		}
		want := bytes.Clone(body)
		for i := len(edits) - 1; i >= 0; i-- {
			e := edits[i]
			want = append(want[:e.off:e.off], append(bytes.Clone(e.put), want[e.off+e.cut:]...)...)
		}
		for _, i := range rng.Perm(len(edits)) {
			task.replace(edits[i].off, edits[i].cut, edits[i].put)
		}
		var got bytes.Buffer
		if err := task.write(&got); err != nil || !bytes.Equal(got.Bytes(), want[itemHeader:]) {
			t.Fatalf("%v: %x, %v, want %x", edits, got.Bytes(), err, want[itemHeader:])
		}
	}
}

// At one place the first comes first; one inside another, or outside the body,
// is refused.
func TestEditsThatMeet(t *testing.T) {
	body := make([]byte, 64)
	task := &taskBytes{body: body}
	task.insert(32, []byte("ab"))
	task.insert(32, []byte("cd"))
	var got bytes.Buffer
	if err := task.write(&got); err != nil || string(got.Bytes()[16:20]) != "abcd" {
		t.Errorf("%q, %v", got.Bytes(), err)
	}
	for _, bad := range [][]edit{{{32, 8, nil}, {36, 0, nil}}, {{60, 5, nil}}, {{8, 0, nil}}, {{32, -1, nil}}} {
		if err := (&taskBytes{body: body, edits: bad}).write(&got); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
