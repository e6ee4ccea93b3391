//go:build linux

package userlab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// PrebuiltVar names a folder of programs that Prebuild has made. It is set where
// there is no compiler: in a guest of package testvm.
const PrebuiltVar = "STACKSHOT_PREBUILT"

// Guest reports whether the programs were built elsewhere: there is no compiler
// here, no gdb, no interpreter, no shell and no shared library.
func Guest() bool { return os.Getenv(PrebuiltVar) != "" }

// cProgram is a program of one source that gcc builds.
type cProgram struct{ source, flags string }

var (
	mapperProgram = cProgram{"mapper.c", "-O2 -g -pthread -Wno-unused-result"}
	lateProgram   = cProgram{"late.c", "-O1 -static -no-pie"}
)

func (b *builder) program(p cProgram) string { return b.cc("gcc", p.source, p.flags) }

// Prebuild makes the programs that a guest has, in dir, without shared libraries,
// by gcc or a cross compiler of it.
func Prebuild(dir, gcc string) error {
	b := &builder{dir: filepath.Join(dir, ".work"), gcc: gcc, static: true}
	defer os.RemoveAll(b.dir)
	b.err = os.CopyFS(b.dir, sources)
	var made []string
	for _, f := range []Frames{FramePointers, NoFramePointers, MixedFrames} {
		made = append(made, b.kperf(f))
	}
	for _, p := range []cProgram{mapperProgram, lateProgram, endsProgram, scenesProgram, hangPrograms[Glibc].cProgram, hangPrograms[Stripped].cProgram} {
		made = append(made, b.program(p))
	}
	if _, err := exec.LookPath("musl-gcc"); err == nil && gcc == "gcc" { // it builds for this machine's architecture
		made = append(made, b.cc("musl-gcc", "hang.c", hangPrograms[Musl].flags))
	}
	for _, path := range made {
		if b.err == nil {
			b.err = os.Rename(path, filepath.Join(dir, filepath.Base(path)))
		}
	}
	return b.err
}

// prebuilt is where a program is that would be built as out; "" where it is not.
func prebuilt(out string) string {
	if !Guest() {
		return ""
	}
	path := filepath.Join(os.Getenv(PrebuiltVar), filepath.Base(out))
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// compiler is gcc, or what stands for it, with what every call of it gets.
func (b *builder) compiler(tool string, args []string) (string, []string) {
	if tool != "gcc" {
		return tool, args
	}
	if b.gcc != "" {
		tool = b.gcc
	}
	if b.static && !strings.Contains(strings.Join(args, " "), " -c ") {
		args = append([]string{"-static"}, args...)
	}
	return tool, args
}
