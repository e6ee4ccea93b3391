//go:build linux && (amd64 || arm64)

package unwind

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"stackshot/internal/testneed"
)

// dwarfNames are readelf's names of the registers that calls keep.
var dwarfNames = map[string]map[string]int{
	"amd64": {"rax": 0, "rdx": 1, "rcx": 2, "rbx": 3, "rsi": 4, "rdi": 5, "rbp": 6, "rsp": 7, "r8": 8, "r9": 9, "r10": 10, "r11": 11, "r12": 12, "r13": 13, "r14": 14, "r15": 15, "ra": 16},
	"arm64": {"x19": 19, "x20": 20, "x21": 21, "x22": 22, "x23": 23, "x24": 24, "x25": 25, "x26": 26, "x27": 27, "x28": 28, "x29": 29, "x30": 30, "ra": 30, "sp": 31},
}

var (
	readelfFDE = regexp.MustCompile(`^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)`)
	readelfRow = regexp.MustCompile(`^[0-9a-f]{16} `)
)

// Every row of every function of a C library, and of a C++ one, is what readelf
// says: rules of the frame address and of every saved register.
func TestRowsAreReadelfs(t *testing.T) {
	testneed.Lab(t, testneed.Witness)
	testneed.Program(t, "readelf", "gcc")
	for _, lib := range []string{"libc.so.6", "libstdc++.so.6"} {
		out, err := exec.Command("gcc", "-print-file-name="+lib).Output()
		if err != nil {
			t.Fatalf("gcc does not say where %s is: %v", lib, err)
		}
		path := strings.TrimSpace(string(out))
		t.Run(lib, func(t *testing.T) { compareRows(t, path) })
	}
}

func compareRows(t *testing.T, path string) {
	if !filepath.IsAbs(path) { // gcc's answer for what it does not find
		testneed.Lacking(t, "needs %s (package g++)", path)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	table, err := NewTable(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range table.Problems() {
		t.Error(p)
	}
	cmd := exec.Command("readelf", "--debug-dump=frames-interp", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	rows, wrong := 0, 0
	var columns []string
	var begin string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case readelfFDE.MatchString(line):
			begin = readelfFDE.FindStringSubmatch(line)[1]
		case strings.Contains(line, " CIE "):
			begin = ""
		case len(fields) > 1 && fields[0] == "LOC":
			columns = fields
		case readelfRow.MatchString(line) && begin != "" && len(fields) == len(columns):
			rows++
			if msg := differs(table, columns, fields); msg != "" {
				if wrong++; wrong < 10 {
					t.Errorf("function %s: %s", begin, msg)
				}
			}
		}
	}
	if rows < 1000 {
		t.Errorf("only %d rows of %s compared", rows, path)
	}
	t.Logf("%d rows compared", rows)
}

func differs(table *Table, columns, fields []string) string {
	pc, _ := strconv.ParseUint(fields[0], 16, 64)
	r, err := table.rowAt(pc, nil)
	if err != nil || r == nil {
		return fmt.Sprintf("no row at %#x: %v", pc, err)
	}
	if got := cfaText(r); got != fields[1] {
		return fmt.Sprintf("CFA at %#x is %s, readelf says %s", pc, got, fields[1])
	}
	for i, name := range columns {
		reg, ok := dwarfNames[runtime.GOARCH][name]
		if i < 2 || !ok {
			continue
		}
		if got := ruleText(r, reg); got != fields[i] && !(got == "s" && fields[i] == "u" && name != "ra") {
			return fmt.Sprintf("%s at %#x is %s, readelf says %s", name, pc, got, fields[i])
		}
	}
	return ""
}

func cfaText(r *row) string {
	if r.cfa.kind == ruleValExpression {
		return "exp"
	}
	for name, reg := range dwarfNames[runtime.GOARCH] {
		if reg == r.cfa.reg {
			return fmt.Sprintf("%s+%d", name, r.cfa.offset)
		}
	}
	return fmt.Sprintf("r%d+%d", r.cfa.reg, r.cfa.offset)
}

func ruleText(r *row, reg int) string {
	for _, rr := range r.regs {
		if rr.reg != reg {
			continue
		}
		switch rr.kind {
		case ruleAt:
			return fmt.Sprintf("c%+d", rr.offset)
		case ruleValue:
			return fmt.Sprintf("v%+d", rr.offset)
		case ruleUndefined:
			return "u"
		case ruleAtExpression:
			return "exp"
		case ruleValExpression:
			return "vexp"
		}
		return "s"
	}
	return "s"
}
