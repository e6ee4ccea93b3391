package kcdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testheap"
	"stackshot/internal/testneed"
)

// codedBy puts b into codings, the innermost first. The witness is the standard library.
func codedBy(t testing.TB, b []byte, names ...string) []byte {
	t.Helper()
	for _, name := range names {
		var out bytes.Buffer
		switch name {
		case "gzip":
			z := gzip.NewWriter(&out)
			_, err := z.Write(b)
			ok(t, err)
			ok(t, z.Close())
		case "members": // of a gzip file, as bgzip and pigz -i make them
			for part := range slices.Chunk(b, len(b)/5+1) {
				out.Write(codedBy(t, part, "gzip"))
			}
		case "empties": // members of nothing, in front and behind
			none := bytes.Repeat(codedBy(t, nil, "gzip"), 200)
			for _, part := range [][]byte{none, codedBy(t, b, "gzip"), none} {
				out.Write(part)
			}
		case "base64":
			out.WriteString(base64.StdEncoding.EncodeToString(b))
		case "lines": // of base64, as base64 and openssl write them
			for line := range slices.Chunk(codedBy(t, b, "base64"), 76) {
				out.Write(append(line, '\n'))
			}
		case "mail":
			out.Write(bytes.ReplaceAll(codedBy(t, b, "lines"), []byte("\n"), []byte("\r\n")))
		case "answer": // to a mail, which it quotes
			fmt.Fprintf(&out, "From: o\r\nReceived: %s\n\n> > %s", strings.Repeat("by mx ", 3000), bytes.ReplaceAll(codedBy(t, b, "mail"), []byte("\n"), []byte(" \n> > ")))
		case "unpadded":
			out.WriteString(utf8Mark + "\n\t " + base64.RawStdEncoding.EncodeToString(b))
		}
		b = out.Bytes()
	}
	return b
}

// readTwice reads a file from a reader that gives a few bytes at a time, without its size, and again from
// memory, with it; both give the same.
func readTwice(t *testing.T, file []byte) (File, error) {
	t.Helper()
	f, err := Read(bytes.NewReader(file), int64(len(file)), 1<<30)
	slow, err2 := Read(&inBits{file, rand.New(rand.NewPCG(7, uint64(len(file))))}, 0, 1<<30)
	if fmt.Sprint(err) != fmt.Sprint(err2) || !bytes.Equal(f.Plain, slow.Plain) || !slices.Equal(f.Codings, slow.Codings) || f.Size != slow.Size && f.Follows == "" {
		t.Errorf("%d bytes, %v, %d in the file; slowly %d, %v, %d", len(f.Plain), err, f.Size, len(slow.Plain), err2, slow.Size)
	}
	return f, err
}

type inBits struct {
	b   []byte
	rng *rand.Rand
}

func (r *inBits) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[:min(len(r.b), 1+r.rng.IntN(200))])
	r.b = r.b[n:]
	return n, nil
}

func TestCodingsAreTakenOff(t *testing.T) {
	for _, plain := range [][]byte{around(), rich(t), big(t, 100)} {
		for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
			var file bytes.Buffer
			ok(t, Compress(&file, plain, e))
			for _, c := range []struct{ by, want []string }{
				{nil, nil}, {[]string{"gzip"}, []string{"gzip"}}, {[]string{"members"}, []string{"gzip"}},
				{[]string{"base64"}, []string{"base64"}}, {[]string{"lines"}, []string{"base64"}}, {[]string{"mail"}, []string{"base64"}},
				{[]string{"empties"}, []string{"gzip"}}, {[]string{"answer"}, []string{"base64"}}, {[]string{"unpadded"}, []string{"base64"}}, {[]string{"gzip", "answer", "members"}, []string{"gzip", "base64", "gzip"}},
				{[]string{"gzip", "lines"}, []string{"base64", "gzip"}}, {[]string{"lines", "members"}, []string{"gzip", "base64"}},
				{[]string{"gzip", "gzip", "base64"}, []string{"base64", "gzip", "gzip"}},
			} {
				coded := codedBy(t, file.Bytes(), c.by...)
				f, err := readTwice(t, coded)
				if err != nil || !bytes.Equal(f.Plain, plain) || f.Envelope != e || !slices.Equal(f.Codings, c.want) || f.Follows != "" || f.Size != int64(len(coded)) {
					t.Errorf("%v in %q: %v, %d bytes of %d, %v in %q, %d of %d in the file, said %q", e, c.by, err, len(f.Plain), len(plain), f.Envelope, f.Codings, f.Size, len(coded), f.Follows)
				}
			}
		}
	}
	_, err := readTwice(t, codedBy(t, rich(t), "gzip", "base64", "gzip", "gzip"))
	if wantFormat(t, err, ErrBadMagic); !strings.Contains(err.Error(), "in gzip, in gzip, in base64: a gzip file, not opened here") {
		t.Errorf("four codings: %v", err)
	}
}

// What stands behind a file in a coding, or behind the coding, is said.
func TestWhatFollowsInCodings(t *testing.T) {
	for _, plain := range [][]byte{rich(t), big(t, 300)} {
		for e := EnvelopeNone; e <= EnvelopeZstd; e++ {
			var b bytes.Buffer
			ok(t, Compress(&b, plain, e))
			file := b.Bytes()
			twice := append(bytes.Clone(file), file...)
			gz := codedBy(t, file, "gzip")
			behind := func(tail string) []byte { return append(bytes.Clone(gz), tail...) }
			in := func(coding string) string {
				return fmt.Sprintf("bytes behind its end, from offset %#x in the %s, are not read", len(file), coding)
			}
			signed := func(coded []byte) (file []byte, says string) {
				return append(coded, "-- \nsincerely"...), fmt.Sprintf("13 bytes behind its end, from offset %#x, are not read", len(coded))
			}
			text, behindText := signed(codedBy(t, file, "lines"))
			of, behindOf := signed(codedBy(t, file, "gzip", "lines"))
			raw, behindRaw := signed(codedBy(t, file, "gzip", "unpadded"))
			for what, c := range map[string]struct {
				file []byte
				want string
			}{
				"two in gzip":                {codedBy(t, twice, "gzip"), in("gzip")},
				"two gzip files":             {append(bytes.Clone(gz), gz...), in("gzip")},
				"two in base64":              {codedBy(t, twice, "lines"), in("base64")},
				"two in base64 in gzip":      {codedBy(t, twice, "lines", "gzip"), in("base64")},
				"zeros in gzip":              {codedBy(t, append(bytes.Clone(file), make([]byte, 5)...), "members"), in("gzip")},
				"zeros behind members":       {append(codedBy(t, file, "members"), 0), fmt.Sprintf("1 bytes behind its end, from offset %#x, are not read", len(codedBy(t, file, "members")))},
				"zeros behind gzip":          {behind("\x00\x00"), fmt.Sprintf("2 bytes behind its end, from offset %#x, are not read", len(gz))},
				"a plain file behind gzip":   {behind(string(file)), fmt.Sprintf("%d bytes behind its end, from offset %#x, are not read", len(file), len(gz))},
				"text behind base64":         {text, behindText},
				"text behind base64 of gzip": {of, behindOf},
				"text behind no padding":     {raw, behindRaw},
			} {
				f, err := readTwice(t, c.file)
				says, another := strings.CutSuffix(f.Follows, ": another file begins there")
				if err != nil || another != (strings.HasPrefix(what, "two") || strings.Contains(what, "a plain file")) || !bytes.Equal(f.Plain, plain) || says != c.want {
					t.Errorf("%v, %s: %v, %d bytes of %d, said %q, want %q", e, what, err, len(f.Plain), len(plain), f.Follows, c.want)
				}
			}
		}
	}
	f, err := Read(bytes.NewReader(append(rich(t), around()...)), 0, 1<<30)
	if ok(t, err); !strings.HasSuffix(f.Follows, "are not read: another file begins there") {
		t.Errorf("of two files it says %q", f.Follows)
	}
	if f, _ := Read(bytes.NewReader(append(rich(t), "\x07\x58\xa2"...)), 0, 1<<30); strings.HasSuffix(f.Follows, "there") {
		t.Errorf("of three bytes it says %q", f.Follows)
	}
}

// A coding that was cut gives the beginning of the file and the error.
func TestK10CutCodings(t *testing.T) {
	plain := big(t, 40)
	for _, by := range [][]string{{"gzip"}, {"members"}, {"lines"}, {"gzip", "lines"}, {"mail", "gzip"}} {
		coded := bytes.TrimRight(codedBy(t, plain, by...), "\r\n=")
		last := 0
		for n := 0; n < len(coded); n += 1 + len(coded)/testneed.Length(100, 5000) {
			f, err := Read(bytes.NewReader(coded[:n]), int64(n), 1<<30)
			if !bytes.HasPrefix(plain, f.Plain) || len(f.Plain) < last || f.Follows != "" {
				t.Fatalf("%q cut to %d of %d bytes gives %d bytes, before %d; said %q", by, n, len(coded), len(f.Plain), last, f.Follows)
			}
			if last = len(f.Plain); err == nil {
				_, err = Check(f.Plain)
			}
			mustBeFormat(t, err)
			if err == nil {
				t.Fatalf("%q cut to %d of %d bytes is whole", by, n, len(coded))
			}
		}
		if last < len(plain)/2 {
			t.Errorf("%q without its last byte gives %d bytes of %d", by, last, len(plain))
		}
	}
}

// A coding whose every byte is damaged in turn gives a *FormatError or the same bytes, and never others
// without a word.
func TestK5DamagedCodings(t *testing.T) {
	plain := rich(t)
	for _, by := range [][]string{{"gzip"}, {"members"}, {"lines"}, {"gzip", "lines"}} {
		coded := codedBy(t, plain, by...)
		for i := range coded {
			for _, x := range []byte{1, 0x80, 0xff} {
				bad := bytes.Clone(coded)
				bad[i] ^= x
				f, err := Read(bytes.NewReader(bad), 0, 1<<20)
				mustBeFormat(t, err)
				_, broken := Check(f.Plain)
				if slices.Contains(f.Codings, "gzip") && err == nil && broken == nil && f.Follows == "" && !bytes.Equal(f.Plain, plain) {
					t.Fatalf("%q with byte %d changed by %#x: other bytes and no error", by, i, x)
				}
			}
		}
	}
	wrong := codedBy(t, plain, "gzip")
	wrong[len(wrong)-5] ^= 1
	f, err := Read(bytes.NewReader(wrong), 0, 1<<20)
	if wantFormat(t, err, ErrBadStream); !bytes.Equal(f.Plain, plain) || !strings.Contains(err.Error(), "in gzip: ") {
		t.Errorf("with a wrong checksum: %d bytes of %d, %v", len(f.Plain), len(plain), err)
	}
	_, err = Read(bytes.NewReader(append(wrong[:10:10], "\xff\xff\xff"...)), 0, 1<<20)
	wantFormat(t, err, ErrBadStream)
	for _, by := range [][]string{{"gzip"}, {"lines"}, {"lines", "gzip"}} { // an error of the file is no fault of the coding
		coded := codedBy(t, plain, by...)
		for _, n := range []int{0, 5, 12, len(coded) / 2, len(coded) - 1, len(coded)} {
			if _, err := Read(io.MultiReader(bytes.NewReader(coded[:n]), broken{}), 0, 1<<20); err != io.ErrClosedPipe {
				t.Errorf("%q, which cannot be read behind byte %d: %v", by, n, err)
			}
		}
	}
}

// Codings do not multiply what a small file may unpack to.
func TestK10BombsInCodings(t *testing.T) {
	body := append(rawItem(MagicStackshot, 0, 0), rawItem(0x7777, 64<<20, 0, make([]byte, 64<<20)...)...)
	once := codedBy(t, body, "gzip")
	for what, file := range map[string][]byte{
		"gzip": once, "gzip in gzip": codedBy(t, once, "gzip"), "three times": codedBy(t, once, "gzip", "gzip"),
		"zstd in gzip": codedBy(t, zstdOf(t, body), "gzip"), "base64": codedBy(t, once, "lines", "gzip"),
	} {
		most := min(len(body), freeUnpack+maxRatio*len(file))
		testheap.Bound(t, int64(16<<20+4*most), what, func() {
			f, err := Read(bytes.NewReader(file), int64(len(file)), 1<<30)
			if len(f.Plain) > most {
				t.Errorf("%s: %d bytes became %d, at most %d", what, len(file), len(f.Plain), most)
			}
			mustBeFormat(t, err)
		})
	}
}

// Reading ends where base64 does, whatever follows, and where nothing of it comes for long.
func TestEndlessLinesInBase64(t *testing.T) {
	lines := strings.Repeat("> \n", maxBlank)
	for _, file := range []string{string(codedBy(t, rich(t), "lines")) + lines, string(codedBy(t, rich(t), "gzip", "unpadded")) + lines} {
		f, err := readTwice(t, []byte(file))
		if ok(t, err); len(f.Plain) == 0 || f.Follows == "" || f.Size > int64(len(file)-maxBlank) {
			t.Errorf("%d bytes, %d of %d in the file, said %q", len(f.Plain), f.Size, len(file), f.Follows)
		}
	}
	coded := string(codedBy(t, rich(t), "base64"))
	_, err := Read(strings.NewReader(coded[:1000]+lines+coded[1000:]), 0, 1<<20)
	if wantFormat(t, err, ErrTruncated); err == nil || !strings.Contains(err.Error(), "in base64: it ends at offset ") {
		t.Error(err)
	}
}

// A coding whose content unpacks to nothing takes no more time than one whose content is something.
func TestK10EmptyBlocksInCodings(t *testing.T) {
	empty := []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + strings.Repeat("\x00\x00\x00\xff\xff", 8<<20))
	file := codedBy(t, empty, "gzip", "gzip")
	f, err := Read(bytes.NewReader(file), int64(len(file)), 1<<30)
	if wantFormat(t, err, ErrTooLarge); f.Plain != nil || !strings.Contains(err.Error(), "in gzip, in gzip, in gzip: ") {
		t.Errorf("%d bytes: %v", len(f.Plain), err)
	}
}

// What is no KCData is called by its name, whatever it is in.
func TestKindsOfOthers(t *testing.T) {
	tar := make([]byte, 1024)
	copy(tar, "name")
	copy(tar[257:], "ustar\x0000")
	for _, c := range []struct{ content, want string }{
		{"\xfd7zXZ\x00\x00\x04", "an xz file, to be unpacked first"},
		{"BZh91AY&SY", "a bzip2 file, to be unpacked first"},
		{"\x04\x22\x4d\x18\x64\x40", "an lz4 file, to be unpacked first"},
		{"7z\xbc\xaf\x27\x1c\x00\x04", "a 7z archive, to be unpacked first"},
		{"PK\x03\x04\x14\x00", "a zip archive, to be unpacked first"},
		{string(tar), "a tar archive, to be unpacked first"},
		{"\x7fELF\x02\x01\x01", "an ELF file"},
		{"KDUMP   \x06\x00", "a memory dump of makedumpfile"},
		{"\x00\x03\xaa\x55\x00\x00", "a ktrace file of Apple's"},
		{"bplist00\xd1\x01", "a property list"},
		{"<?xml version=\"1.0\"?>\n<!DOCTYPE plist>\n<plist version=\"1.0\">", "a property list"},
		{"PERFILE2h\x00\x00", "a file of perf record"},
		{`{"bug_type":"288","timestamp":"x"}` + "\n{}", "a report of Apple's in JSON (.ips)"},
		{"\r\n {\n  \"schema\": 1 }", "JSON"}, {`[ {"a": 1}]`, "JSON"}, {"\xef\xbb\xbf{}xx", "JSON"}, {"[    0.000000] Linux version", "text"},
		{"== THE PICTURE\nstackshot of host", "text"}, {"Übung: " + strings.Repeat("汉", 300), "text"}, {"B1iiWQ too short", "text"},
		{string(make([]byte, 600)), "zeros"}, {"\x01\x02\x03\x04abc", "magic 0x4030201"}, {"text \x00 and not", "magic 0x74786574"}, {"caf\xe9 latin", "text"}, {"\xff\xfet\x00e\x00", "text in UTF-16"}, {"makedumpfile\x00\x00", "a memory dump of makedumpfile in flattened form"},
	} {
		for _, by := range [][]string{nil, {"gzip"}, {"gzip", "lines"}} {
			_, err := readTwice(t, codedBy(t, []byte(c.content), by...))
			wantFormat(t, err, ErrBadMagic)
			where := ""
			for _, name := range slices.Backward(by) {
				where += "in " + map[string]string{"gzip": "gzip", "lines": "base64"}[name] + ", "
			}
			if where != "" {
				where = strings.TrimSuffix(where, ", ") + ": "
			}
			if want := "kcdata: offset 0x0: " + where + c.want + ": not a kcdata buffer"; err == nil || err.Error() != want {
				t.Errorf("%.20q: %v, want %s", c.content, err, want)
			}
		}
	}
}

// Every magic is known in base64, with all that may stand behind it; text that only looks like base64 is not.
func TestBase64IsKnownByItsContent(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		b := binary.LittleEndian.AppendUint64(nil, rng.Uint64())
		known := rng.IntN(2) == 0
		if known {
			magic := []uint32{uint32(MagicStackshot), uint32(MagicDeltaStackshot), uint32(MagicCompressed), uint32(MagicCrashinfo), zstdMagic, 0x88b1f | rng.Uint32()<<24}
			binary.LittleEndian.PutUint32(b, magic[rng.IntN(len(magic))])
		}
		text := base64.StdEncoding.EncodeToString(b)
		if c := newSource(strings.NewReader(text[:base64Begin])).codingOf(); (c != nil) != known || c != nil && c.name != "base64" {
			t.Errorf("%s of % x: %+v", text, b, c)
		}
	}
}
