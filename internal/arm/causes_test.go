package arm

import (
	"context"
	"testing"

	"stackshot/internal/testvm"
	"stackshot/kcdata"
)

// A death is one way for the kernel of a guest to die. inside and die run in the guest, outside on the host.
type death struct {
	name        string
	short, long []kernelOf
	append      string                                              // to the kernel's command line
	function    string                                              // of the kernel, whose address outside is given
	inside      func(*testing.T, *Armed)                            // prepares it, when all is announced
	die         func(*testing.T, *Armed)                            // brings it about
	outside     func(context.Context, *testvm.Driven, uint64) error // or this does
	packed      bool                                                // QEMU's compressed dump is read too

	// What the file says.
	cause    uint32
	message  string // pattern
	by       string // pattern of the name of the thread that panicked
	through  string // a function of its stack
	nested   uint64
	outcomes []uint32 // nil: whole
	all      bool     // all threads are there, whatever the outcome
	unmarked bool     // the thread that panicked may be missing: the walk did not come to it
	also     func(*testing.T, *kcdata.Snapshot)
}

var (
	newest     = kernelOf{"amd64", "newest"}
	linux612   = kernelOf{"amd64", "6.12"}
	linux618   = kernelOf{"amd64", "6.18"}
	arm64      = kernelOf{"arm64", "6.12"}
	amd64      = []kernelOf{newest, linux612, linux618}
	everywhere = append(amd64[:3:3], arm64)
)

var deaths = []death{
	{
		name: "c", short: []kernelOf{linux612}, long: everywhere, packed: true, die: amongStops, also: toldTwice,
		cause: kcdata.PanicByPanic, message: `^sysrq triggered crash$`, by: `^arm\.test$`, through: "write_sysrq_trigger",
	},
	{
		// Without a crash kernel the oops comes to crash_kexec first, and then to panic().
		name: "oops", short: []kernelOf{newest}, long: everywhere, function: "__handle_sysrq", inside: panicOnOops,
		outside: func(ctx context.Context, g *testvm.Driven, addr uint64) error {
			return g.UndefinedAt(ctx, addr, func() error { return g.SerialBreak("h") })
		},
		cause: kcdata.PanicByCrash, message: `Fatal exception in interrupt`, by: `.`, through: "handle_irq_event", // it goes on below the fault
	},
	{
		name: "nmi-idle", short: []kernelOf{newest}, long: amd64, append: "unknown_nmi_panic",
		outside: nmiWhen(true),
		cause:   kcdata.PanicByPanic, message: `NMI: Not continuing`, by: `^swapper/0$`, through: "nmi",
	},
	{
		name: "nmi-busy", long: amd64, append: "unknown_nmi_panic", inside: spinOnCPU0,
		outside: nmiWhen(false),
		cause:   kcdata.PanicByPanic, message: `NMI: Not continuing`, by: `^arm\.test$`, through: "nmi",
	},
	{
		name: "hung-task", long: everywhere, die: panicAtHungTasks,
		cause: kcdata.PanicByPanic, message: `^hung_task: blocked tasks$`, by: `^khungtaskd$`, through: "kthread",
	},
	{
		name: "spin", long: everywhere, append: "nowatchdog", die: besideASpinner,
		cause: kcdata.PanicByPanic, message: `^sysrq triggered crash$`, by: `^arm\.test$`, through: "write_sysrq_trigger", also: otherCPURuns,
	},
	{
		name: "no-memory", long: everywhere, die: eatAll,
		cause: kcdata.PanicByPanic, message: `^Out of memory: `, through: "out_of_memory",
	},
	{
		// The second CPU's panic finds the walk of the first, and goes on without one.
		name: "two-cpus", long: everywhere, append: "nowatchdog", die: onTwoCPUs,
		cause: kcdata.PanicByPanic, message: `^sysrq triggered crash$`, by: `^arm\.test$`, through: "write_sysrq_trigger",
		nested: 1, outcomes: []uint32{kcdata.PanicWhole, kcdata.PanicInProgress}, unmarked: true,
	},
	{
		// The walk itself oopses when it has come to the end of the threads.
		name: "inside", long: everywhere, function: "bpf_iter_task_destroy",
		outside: func(ctx context.Context, g *testvm.Driven, addr uint64) error {
			return g.OopsAt(ctx, addr, func() error { return g.SerialBreak("c") })
		},
		cause: kcdata.PanicByPanic, message: `^sysrq triggered crash$`, unmarked: true,
		nested: 1, outcomes: []uint32{kcdata.PanicInProgress}, all: true,
	},
}

func deathNamed(name string) *death {
	for i := range deaths {
		if deaths[i].name == name {
			return &deaths[i]
		}
	}
	return nil
}
