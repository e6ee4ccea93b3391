package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"stackshot/kcdata"
	"stackshot/snapshot"
)

// One capture of the whole machine into a file. The result says how the capture went;
// a partial one lists what is missing.
func ExampleTake() {
	file, err := os.Create("/dev/shm/machine.kcdata")
	if err != nil {
		log.Fatal(err)
	}
	res, err := snapshot.Take(context.Background(), snapshot.Options{MaxPause: 50 * time.Millisecond}, snapshot.Request{Output: file})
	if err = errors.Join(err, file.Close()); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d threads by engine %s, stopped for %v\n", res.Threads, res.Engine, res.Stopped)
	for _, w := range res.Warnings {
		fmt.Println(w.Code, w.Text)
	}
	for _, l := range res.LeftOut {
		fmt.Printf("task %d is not whole: %d threads are missing\n", l.Tgid, l.Threads)
	}
}

// Several captures by one session: programs are loaded, and workers made, only once.
// Each snapshot is decoded from memory.
func ExampleSession() {
	s, err := snapshot.Open(snapshot.Options{Engine: snapshot.EngineAuto})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for range 3 {
		var file bytes.Buffer
		res, err := s.Take(ctx, snapshot.Request{Pids: []int{os.Getpid()}, Output: &file})
		if errors.Is(err, snapshot.ErrBusy) {
			continue // another program was capturing for all of Options.LockWait
		}
		if err != nil {
			log.Fatal(err)
		}
		snap, err := kcdata.ParseSnapshot(file.Bytes())
		if err != nil {
			log.Fatal(err)
		}
		for _, task := range snap.Tasks {
			fmt.Printf("%s: %d threads, window %v\n", task.Name, len(task.Threads), res.Window)
		}
		time.Sleep(time.Second)
	}
}
