package show

import (
	"encoding/json"
	"strings"
	"testing"
)

// What is nil is absent, what is empty or zero is there; members keep their order, and text
// stays as it is, at every depth.
func TestObject(t *testing.T) {
	var none *uint32
	o := Object{
		{"z", "<a>&b"}, {"a", none}, {"b", nil}, {"c", Known(uint64(0))}, {"d", []int{}}, {"e", []int(nil)}, {"f", Object(nil)},
		{"g", Known("x")}, {"h", Present(3, 1, 0)}, {"i", Present(2, 1, 7)}, {"j", Object{{"k", Hex(31)}, {"l", "<"}}},
		{"m", List([]int{1, 2}, func(n *int) Object { return Object{{"n", *n}} })}, {"o", false},
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		t.Fatal(err)
	}
	want := `{"z":"<a>&b","d":[],"g":"x","h":0,"j":{"k":"0x1f","l":"<"},"m":[{"n":1},{"n":2}],"o":false}` + "\n"
	if b.String() != want {
		t.Errorf("%s, want %s", b.String(), want)
	}
	if _, err := json.Marshal(Object{{"f", func() {}}}); err == nil {
		t.Error("a function has no JSON")
	}
	if got, _ := json.Marshal(Object{}); string(got) != "{}" {
		t.Errorf("no members: %s", got)
	}
}
