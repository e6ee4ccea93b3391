//go:build ignore

// Gen writes licenses.txt: what the command is made of on every architecture, and
// the licence files between each package and its module's root.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const command = "stackshot/cmd/stackshot"

var (
	architectures = []string{"amd64", "arm64"}
	licenceFile   = regexp.MustCompile(`^(?i:licen[cs]e|copying|notice|patents)(\.(txt|md))?$`)
	line          = strings.Repeat("=", 78)
)

// text is a licence, and the names of what it covers in the order they were found.
type text struct {
	body   string
	covers []string
}

type texts []*text

func main() {
	log.SetFlags(0)
	log.SetPrefix("licenses: ")
	var all texts
	all.file("stackshot", "../../LICENSE")
	all.file("stackshot's BPF programs", "../bpf/LICENSES.md")
	all.file("Go's runtime and standard library", filepath.Join(output("go", "env", "GOROOT"), "LICENSE"))
	for _, p := range packages() {
		if n := all.ofPackage(p); n == 0 {
			log.Fatalf("%s %s has no licence file", p.module, p.version)
		}
	}
	if err := os.WriteFile("licenses.txt", all.bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

// pkg is a package of another module.
type pkg struct{ module, version, root, dir string }

// packages are those that are compiled into the command on any architecture, sorted.
func packages() []pkg {
	lines := map[string]bool{}
	for _, arch := range architectures {
		cmd := exec.Command("go", "list", "-deps", "-f",
			`{{with .Module}}{{if not .Main}}{{.Path}}|{{.Version}}|{{.Dir}}|{{$.Dir}}{{end}}{{end}}`, command)
		cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOARCH="+arch)
		for line := range strings.Lines(run(cmd)) {
			lines[strings.TrimSpace(line)] = true
		}
	}
	var list []pkg
	for line := range lines {
		if f := strings.Split(line, "|"); len(f) == 4 {
			list = append(list, pkg{f[0], f[1], f[2], f[3]})
		}
	}
	slices.SortFunc(list, func(a, b pkg) int { return strings.Compare(a.module+a.dir, b.module+b.dir) })
	return list
}

// ofPackage adds the licence files from the package's folder up to its module's
// root, and counts them.
func (all *texts) ofPackage(p pkg) (n int) {
	for dir := p.dir; len(dir) >= len(p.root); dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			log.Fatal(err)
		}
		for _, e := range entries {
			if !licenceFile.MatchString(e.Name()) {
				continue
			}
			name := p.module + " " + p.version
			if below := strings.TrimPrefix(dir, p.root); below != "" {
				name += ", " + strings.TrimPrefix(below, "/")
			}
			all.file(name, filepath.Join(dir, e.Name()))
			n++
		}
	}
	return n
}

func (all *texts) file(name, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	body := strings.Trim(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
	i := slices.IndexFunc(*all, func(t *text) bool { return t.body == body })
	if i < 0 {
		i = len(*all)
		*all = append(*all, &text{body: body})
	}
	if t := (*all)[i]; !slices.Contains(t.covers, name) {
		t.covers = append(t.covers, name)
	}
}

func (all texts) bytes() []byte {
	var b bytes.Buffer
	for i, t := range all {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "%s\n%s\n%s\n\n%s\n", line, strings.Join(t.covers, "\n"), line, t.body)
	}
	return b.Bytes()
}

func output(name string, args ...string) string {
	return strings.TrimSpace(run(exec.Command(name, args...)))
}

func run(cmd *exec.Cmd) string {
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		log.Fatalf("%v: %v", cmd, err)
	}
	return string(out)
}
