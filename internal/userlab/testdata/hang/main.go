// Two goroutines on threads of their own, each with the mutex that the other wants,
// and one that waits for a channel to which nobody sends.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
)

var locks [2]sync.Mutex

//go:noinline
func takeBoth(first, second *sync.Mutex, held *sync.WaitGroup, tid *int) {
	runtime.LockOSThread()
	first.Lock()
	*tid = syscall.Gettid()
	held.Done()
	held.Wait()
	second.Lock()
}

func main() {
	runtime.LockOSThread()
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var held sync.WaitGroup
	var tids [3]int // each is written by its goroutine before held is done
	held.Add(3)
	go takeBoth(&locks[0], &locks[1], &held, &tids[0])
	go takeBoth(&locks[1], &locks[0], &held, &tids[1])
	go func() {
		runtime.LockOSThread()
		tids[2] = syscall.Gettid()
		held.Done()
		<-make(chan int)
	}()
	held.Wait()
	fmt.Printf("ready a=%d b=%d receiver=%d\n", tids[0], tids[1], tids[2])
	var b [1]byte
	syscall.Read(p[0], b[:]) // or Go sees that all its goroutines sleep
}
