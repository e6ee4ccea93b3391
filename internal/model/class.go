package model

import "stackshot/kcdata"

// Class is what a reader wants to know first about a thread. Reports list the classes in this
// order: the threads that may be the trouble come first.
type Class int

const (
	Blocked    Class = iota // uninterruptible sleep: D
	Running                 // on a CPU when the stop took it
	Runnable                // waiting for a CPU
	Held                    // stopped, traced, frozen
	Sleeping                // interruptible
	Unknown                 // the file does not say
	Parked                  // a parked kernel thread
	Idle                    // TASK_IDLE: sleeps like D, but is not counted in the load
	Zombie                  // zombie or dead
	CPUIdle                 // a CPU's idle thread
	ClassCount              // number of the classes above
)

// classes has for each class its stable name, which JSON has, and the words for many threads.
var classes = [ClassCount]struct{ name, many string }{
	Blocked:  {"blocked", "in uninterruptible sleep (D)"},
	Running:  {"running", "running"},
	Runnable: {"runnable", "waiting for a CPU"},
	Held:     {"stopped", "stopped or traced"},
	Sleeping: {"sleeping", "sleeping"},
	Unknown:  {"unknown", "in an unknown state"},
	Parked:   {"parked", "parked"},
	Idle:     {"idle", "idle (kernel)"},
	Zombie:   {"zombie", "zombie or dead"},
	CPUIdle:  {"cpu_idle", "idle threads of CPUs"},
}

// String is the stable name of the class.
func (c Class) String() string { return classes[c].name }

// Many is the words that follow a number of threads of the class: "3 waiting for a CPU".
func (c Class) Many() string { return classes[c].many }

// WantsCPU reports whether a thread of this class runs, or would run if it had a CPU.
func (c Class) WantsCPU() bool { return c == Running || c == Runnable }

// IsIdleKernel reports whether t, of class c, is a kernel thread in its ordinary sleep. A
// kernel thread that waits for work sleeps interruptibly or in TASK_IDLE. One in D waits for
// something that it needs, and one that runs has work.
func IsIdleKernel(task *kcdata.Task, t *kcdata.Thread, c Class) bool {
	kernel := task.IsKernel() || t.HasLinux && t.Linux.Flags&kcdata.PFKthread != 0
	return kernel && (c == Sleeping || c == Idle || c == Parked)
}
