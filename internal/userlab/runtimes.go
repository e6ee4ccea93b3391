//go:build linux

package userlab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"stackshot/internal/testtask"
)

// runtimeActors are programs with a run time of their own.
func runtimeActors() []Actor {
	return []Actor{
		{Name: "go", Needs: []string{"go"}, make: goroutines, Want: [][]string{
			{"main.(*reader).blocked", "main.recurse", "main.recurse", "main.main.func1"},
			{"main.spin", "main.recurse", "main.main.func1"}}},
		{Name: "python", Needs: []string{"python3"}, make: func(b *builder) launch {
			return launch{argv: []string{"python3", b.file("blocked.py")}, threads: 7, spin: 1}
		}},
		{Name: "node", Needs: []string{"node"}, make: node, then: perfMap,
			// Frames that were made anew from optimised code have no function's address.
			Want: [][]string{{"AtomicsWait", "JS:~sleep"}, {"spin"}}},
		{Name: "java", Needs: []string{"java", "javac", "jcmd"}, make: javaWith("-XX:+PreserveFramePointer"), then: jvmPerfMap,
			Want: [][]string{{"Blocked.recurse", "Blocked.recurse"}}},
		{Name: "java-nofp", Needs: []string{"java", "javac", "jcmd"}, make: javaWith(), then: jvmPerfMap, Apart: true},
	}
}

func goroutines(b *builder) launch {
	out := b.file("goroutines.out")
	b.run("go", "build", "-o", out, "goroutines/main.go")
	return launch{argv: []string{out}, threads: 200, spin: 4}
}

// node writes its perf map itself, where every writer of such maps does.
func node(b *builder) launch {
	return launch{argv: []string{"node", "--perf-basic-prof", "--interpreted-frames-native-stack", b.file("blocked.js")},
		threads: 3, spin: 1}
}

func javaWith(flags ...string) func(b *builder) launch {
	return func(b *builder) launch {
		if _, err := os.Stat(b.file("Blocked.class")); err != nil {
			b.run("javac", "Blocked.java")
		}
		argv := []string{"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:-UsePerfData"}
		return launch{argv: append(append(argv, flags...), "-cp", b.file(""), "Blocked"), threads: 6, spin: 1}
	}
}

// perfMap waits for the map and sees that it goes with the process.
func perfMap(p *Process) error {
	path := fmt.Sprintf("/tmp/perf-%d.map", p.Pid)
	p.after = append(p.after, func() { os.Remove(path) })
	return testtask.WaitFor(endTime, func() (bool, error) {
		st, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return err == nil && st.Size() > 0, err
	})
}

// jvmPerfMap has the virtual machine write its map.
func jvmPerfMap(p *Process) error {
	socket := fmt.Sprintf("/tmp/.java_pid%d", p.Pid)
	p.after = append(p.after, func() { os.Remove(socket) })
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "jcmd", strconv.Itoa(p.Pid), "Compiler.perfmap")
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("jcmd: %w\n%s", err, out)
	}
	return perfMap(p)
}
