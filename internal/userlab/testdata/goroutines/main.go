// Two hundred goroutines on threads of their own, most asleep in read(2) at
// different depths, four in user mode. And some that wait without a thread.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

const (
	all      = 200
	spinning = 4
)

var sink [all]int // element i is written by goroutine i alone

//go:noinline
func recurse(depth, i int, leaf func(int) int) int {
	if depth == 0 {
		return leaf(i)
	}
	n := recurse(depth-1, i, leaf)
	sink[i] += n
	return n
}

//go:noinline
func spin(i int) int {
	for {
		sink[i]++
	}
}

type reader struct{ fd int }

//go:noinline
func (r *reader) blocked(int) int {
	var b [1]byte
	n, _ := syscall.Read(r.fd, b[:])
	return n
}

func main() {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r := &reader{p[0]}
	var made sync.WaitGroup
	made.Add(all)
	for i := range all {
		go func() {
			runtime.LockOSThread()
			made.Done()
			leaf := r.blocked
			if i < spinning {
				leaf = spin
			}
			recurse(i%20, i, leaf)
		}()
	}
	for range 10 {
		go func() { <-make(chan int) }()
	}
	made.Wait()
	fmt.Println(strings.Join([]string{"ready", runtime.Version()}, " "))
	(&reader{p[0]}).blocked(0)
}
