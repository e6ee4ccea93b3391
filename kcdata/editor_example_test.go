package kcdata_test

import (
	"bytes"
	"fmt"

	"stackshot/kcdata"
)

// A thread's container, in two pieces that part anywhere, gets a name, and its record
// another state.
func ExampleEditor() {
	w := kcdata.NewBuffer(0)
	w.BeginContainer(kcdata.TypeThread, 7)
	w.Struct(kcdata.TypeLinuxThread, &kcdata.LinuxThread{Tid: 7})
	w.EndContainer(7)
	b := w.Written()

	e := kcdata.NewEditor(b[:99], b[99:])
	for it, err := range e.Items() {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch it.Type {
		case kcdata.TypeLinuxThread:
			kcdata.Patch(it.Position(), func(t *kcdata.LinuxThread) { t.State = 2 })
		case kcdata.TypeContainerEnd:
			name := kcdata.NewBuffer(0)
			name.String(kcdata.TypeThreadName, "worker")
			e.InsertBefore(it.Position(), name.Written())
		}
	}
	var out bytes.Buffer
	fmt.Println(e.WriteTo(&out))

	for it := range kcdata.NewEditor(out.Bytes()).Items() {
		fmt.Println(it.Type, len(it.Data))
	}
	// Output:
	// 304 <nil>
	// CONTAINER_BEGIN 4
	// LINUX_THREAD 208
	// THREAD_NAME 7
	// CONTAINER_END 0
}
