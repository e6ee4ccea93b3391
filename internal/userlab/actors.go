//go:build linux

package userlab

import (
	"os"
	"path/filepath"
	"runtime"
)

// Actors are all programs of the lab, one process each if the name does not
// say otherwise.
func Actors() []Actor {
	all := append(nativeActors(), runtimeActors()...)
	if runtime.GOARCH == "amd64" {
		all = append(all, Actor{Name: "elf32", Needs: []string{"gcc"}, make: func(b *builder) launch {
			return launch{argv: []string{b.cc("gcc", "elf32.c", elf32Flags)}}
		}})
	}
	return all
}

// No library, so that gcc needs none of 32 bits.
const elf32Flags = "-m32 -O2 -g -static -nostdlib -ffreestanding -fno-pie -no-pie"

// Threads of blocked.c, the first and the one in user mode included.
const blockedThreads = 13

func nativeActors() []Actor {
	const cflags = "-O2 -g -pthread -Wno-unused-result -fomit-frame-pointer"
	blocked := func(tool, flags string) func(b *builder) launch {
		return func(b *builder) launch {
			return launch{argv: []string{b.cc(tool, "blocked.c", flags), "spin"}, threads: blockedThreads, spin: 1}
		}
	}
	callers := [][]string{{"in_user_mode", "deeper", "deeper", "deeper", "deeper", "deeper", "with_alloca", "thread"}}
	return []Actor{
		{Name: "c", Needs: []string{"gcc"}, make: blocked("gcc", cflags), Want: callers},
		{Name: "c-fp", Needs: []string{"gcc"}, make: blocked("gcc", "-O1 -fno-omit-frame-pointer -pthread -Wno-unused-result"), Want: callers},
		{Name: "c-stripped", Needs: []string{"gcc"}, make: blocked("gcc", cflags+" -s")},
		{Name: "c-chroot", Needs: []string{"gcc"}, make: chrooted},
		{Name: "c-signals", Needs: []string{"gcc"}, make: func(b *builder) launch {
			return launch{argv: []string{b.cc("gcc", "signals.c", cflags)}, threads: 7}
		}, Want: [][]string{{"handler_sleeps", "handler", "by_itself"}, {"handler_sleeps", "handler", "in_call"},
			{"handler_sleeps", "handler", "in_user_mode"}}},
		{Name: "c-vdso", Needs: []string{"gcc"}, make: func(b *builder) launch {
			return launch{argv: []string{b.cc("gcc", "vdso.c", cflags)}, spin: 1}
		}, Want: [][]string{{"ask_the_clock", "main"}}},
		{Name: "c++", Needs: []string{"g++"}, make: func(b *builder) launch {
			return launch{argv: []string{b.cc("g++", "exceptions.cpp", "-O2 -g -pthread")}, threads: 4, spin: 1}
		}, Want: [][]string{{"sleep_for_ever", "catches"}, {"sleep_for_ever", "Sleeper", "unwinds"}}},
		{Name: "musl-static", Needs: []string{"gcc", "musl-gcc"}, make: blocked("musl-gcc", cflags+" -static"), Want: callers},
		{Name: "rust", Needs: []string{"gcc", "rustc"}, make: func(b *builder) launch {
			return launch{argv: []string{b.rust("blocked.rs")}, threads: 6, spin: 1}
		}, Want: [][]string{{"deeper", "deeper", "deeper"}}},
		{Name: "pipeline", Needs: []string{"sh", "sleep", "cat"}, make: func(*builder) launch {
			return launch{argv: []string{"sh", "-c", "echo ready; sleep 1000 | cat | cat"}, members: 4, threads: 4}
		}},
		{Name: "busybox", Needs: []string{"busybox"}, make: func(*builder) launch {
			return launch{argv: []string{"busybox", "sh", "-c", "echo ready; sleep 1000 | cat"}, members: 3, threads: 3}
		}},
	}
}

// chrooted is a static program whose path leads nowhere but in its own root.
func chrooted(b *builder) launch {
	root := filepath.Join(b.dir, "root")
	if err := os.MkdirAll(root, 0o755); err != nil && b.err == nil {
		b.err = err
	}
	b.run("gcc", "-O2", "-g", "-pthread", "-static", "-Wno-unused-result", "-o", filepath.Join(root, "lonely"), "blocked.c")
	return launch{argv: []string{"/lonely"}, chroot: root, threads: blockedThreads - 1}
}
