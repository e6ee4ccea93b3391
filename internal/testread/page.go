package testread

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// packageDir is where go test started the tests: some of them go elsewhere.
var packageDir, _ = os.Getwd()

// Page fails the test unless the reader that was made from docs/format.md alone finds
// in a file, plain or in an envelope that the standard library can open, all that our
// own decoder finds in plain, field by field. It needs the Go tool and the sources.
func Page(tb testing.TB, file string, plain []byte) {
	tb.Helper()
	// The reader is a program of its own, with nothing of this module: it is named by its file,
	// and -trimpath leaves no way to find that but asking.
	ask := exec.Command("go", "env", "GOMOD")
	ask.Dir = packageDir
	mod, err := ask.Output()
	if err != nil {
		tb.Fatalf("go env GOMOD: %v", err)
	}
	cmd := exec.Command("go", "run", filepath.Join(filepath.Dir(string(mod)), "kcdata/testdata/reader/main.go"), file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("the page's reader: %v: %s", err, stderr.Bytes())
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		tb.Fatalf("the page's reader: %v", err)
	}
	s, err := kcdata.ParseSnapshot(plain)
	if err != nil {
		tb.Fatal(err)
	}
	p := page{root, "the file", nil}
	p.snapshot(s)
	for _, f := range p.out {
		tb.Errorf("the page's reader: %s", f)
	}
}

// page is a container as the reader shows it; what was compared is taken out of it.
type page struct {
	items map[string]any
	where string
	out   []string
}

func (p *page) fault(format string, args ...any) {
	if len(p.out) < maxFaults {
		p.out = append(p.out, p.where+": "+fmt.Sprintf(format, args...))
	}
}

func (p *page) take(key string) any {
	v := p.items[key]
	delete(p.items, key)
	return v
}

// same compares a value, as JSON has it.
func (p *page) same(what string, got, want any) {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		p.fault("%s is %.80s, ours %.80s", what, g, w)
	}
}

// record compares the record under key with a struct, or a pointer that is nil where
// there is none.
func (p *page) record(key string, want any) {
	v := reflect.ValueOf(want)
	got := p.take(key)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() != (got == nil) {
			p.fault("%s is there %v, ours %v", key, got != nil, !v.IsNil())
		}
		if v.IsNil() {
			return
		}
		v = v.Elem()
	}
	p.fields(key, got, v)
}

func (p *page) fields(key string, got any, v reflect.Value) {
	m, isRecord := got.(map[string]any)
	if !isRecord {
		p.fault("%s is %v", key, got)
		return
	}
	for i := range v.NumField() {
		name, _, tagged := strings.Cut(v.Type().Field(i).Tag.Get("kc"), ",")
		name = name[:min(len(name), 31)]
		f := v.Field(i)
		var want any = f.Interface()
		if _, isText := m[name].(string); isText {
			raw := f.Slice(0, f.Len()).Bytes()
			want, _, _ = strings.Cut(string(raw), "\x00")
		} else if tagged {
			p.fault("%s.%s is no text", key, name)
		}
		p.same(key+"."+name, m[name], want)
		delete(m, name)
	}
	for name := range m {
		if !strings.HasSuffix(name, "_text") {
			p.fault("%s.%s is not ours", key, name)
		}
	}
}

// array compares the elements under key with a slice of structs or of numbers.
func (p *page) array(key string, want any) {
	list, _ := p.take(key).([]any)
	v := reflect.ValueOf(want)
	if v.Len() != len(list) {
		p.fault("%s has %d elements, ours %d", key, len(list), v.Len())
		return
	}
	for i, got := range list {
		if e := v.Index(i); e.Kind() == reflect.Struct {
			p.fields(key, got, e)
		} else if m, _ := got.(map[string]any); len(m) == 1 {
			for _, one := range m {
				p.same(key, one, e.Interface())
			}
		}
	}
}

// texts compares the texts under one of the keys.
func (p *page) texts(key string, want ...string) {
	got := p.take(key)
	if s, plain := got.(string); plain {
		got = []any{s}
	}
	if len(want) == 1 && want[0] == "" {
		want = nil
	}
	list, _ := got.([]any)
	if len(list) == 1 && list[0] == "" {
		list = nil // our decoder does not tell an empty text from none
	}
	var shown []string // JSON has U+FFFD for each byte that is not UTF-8
	for _, w := range want {
		shown = append(shown, string([]rune(w)))
	}
	p.same(key, fmt.Sprintf("%q", list), fmt.Sprintf("%q", shown))
}

// raw is the bytes under key, those of several items joined.
func (p *page) raw(key string) (out []byte) {
	list, _ := p.take(key).([]any)
	for _, x := range list {
		b, err := hex.DecodeString(x.(string))
		if err != nil {
			p.fault("%s: %v", key, err)
		}
		out = append(out, b...)
	}
	return out
}

// inside goes on with the containers of p, of which there are n.
func (p *page) inside(n int, each func(i int, in *page)) {
	list, _ := p.take("in").([]any)
	if len(list) != n {
		p.fault("%d containers, ours %d", len(list), n)
		return
	}
	for i, x := range list {
		in := page{items: x.(map[string]any), where: fmt.Sprintf("%s > %d", p.where, i)}
		each(i, &in)
		p.out = append(p.out, in.out[:min(len(in.out), maxFaults-min(len(p.out), maxFaults))]...)
	}
}

// rest are the items that nothing was compared with.
func (p *page) rest() {
	for key := range p.items {
		p.fault("%s was not compared", key)
	}
}
