package snapshot

import (
	"fmt"
	"os/exec"
	"testing"

	"stackshot/kcdata"
)

// deepThreads is a C program of many threads, each blocked some frames deep. Like
// those of many programs, their stacks begin anywhere in a page.
const deepThreads = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(SPOIL) && defined(__x86_64__)
__attribute__((noinline)) static void block(void)
{
	long r = 34;
	__asm__ volatile("push %%rbp; mov $64, %%ebp; syscall; pop %%rbp" : "+a"(r) : : "rcx", "r11", "memory");
}
#else
static void block(void) { pause(); }
#endif
static int deep(int n)
{
	char pad[64];
	if (n)
		return deep(n - 1) + 1;
	for (;;)
		block();
	return pad[0];
}
static int depth;
static void *run(void *arg)
{
	volatile char *from = __builtin_alloca((long)arg * 272 % 4096 + 1);
	from[0] = 1;
	return (void *)(long)(deep(depth) + from[0]);
}
int main(int argc, char **argv)
{
	pthread_attr_t a;
	depth = atoi(argv[2]);
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	for (int i = 1; i < atoi(argv[1]); i++) {
		pthread_t t;
		if (pthread_create(&t, &a, run, (void *)(long)i))
			return 1;
	}
	usleep(500000);
	puts("ready");
	fflush(stdout);
	deep(depth);
}
`

// BenchmarkUserStacks measures what user stacks add to the stop, with 4,000
// threads of a C program blocked 10 frames deep, in turn: off, fp, the chain and
// the top KiB, and auto as by default.
//
//	fp/off, …          median ratio of the time per thread, within a round
//	top/off - fp/off   what the top KiB adds
//	auto-ns/KiB        what each further KiB costs, while all CPUs record
//	auto-B/thread      that are there to be copied
//
// With SPOIL the frame pointer holds something else, as in code built without:
// then auto copies what is there (amd64).
func BenchmarkUserStacks(b *testing.B) {
	for _, c := range []struct{ engine, flag string }{
		{EngineTrap, "-fno-omit-frame-pointer"}, {EngineTrap, "-DSPOIL"}, {EnginePull, "-fno-omit-frame-pointer"},
	} {
		b.Run(c.engine+c.flag, func(b *testing.B) {
			requireBPF(b)
			pid := startDeep(b, c.flag, 4000, 10)
			o := Options{Engine: c.engine, Latency: LatencyOff, UserStacks: UserStacksOff}
			off := benchSession(b, o)
			o.UserStacks = UserStacksFP
			fp := benchSession(b, o)
			o.UserStacks, o.StackBytes = UserStacksAuto, 1<<10
			top := benchSession(b, o)
			o.StackBytes = 0
			auto := benchSession(b, o)
			r := &rounds{entrants: []*entrant{stopped("off", off), stopped("fp", fp), stopped("top", top), stopped("auto", auto)}}
			r.run(b)
			for _, name := range []string{"fp", "top", "auto"} {
				r.reportRatio(b, name, "off")
			}
			b.ReportMetric(median(r.perThread("off")), "off-ns/thread")
			fromTop, fromAuto := takenBy(b, top, pid), takenBy(b, auto, pid)
			extra := float64(fromAuto.Bytes-fromTop.Bytes) / float64(fromAuto.Threads) / 1024
			if extra > 0.5 {
				b.ReportMetric((median(r.perThread("auto"))-median(r.perThread("top")))/extra, "auto-ns/KiB")
			}
			b.ReportMetric(float64(fromAuto.Bytes)/float64(fromAuto.Threads), "auto-B/thread")
			b.ReportMetric(float64(fromAuto.Links)/float64(fromAuto.Threads), "links/thread")
			b.ReportMetric(float64(fromAuto.Translations)/float64(fromAuto.Threads), "walks/thread")
		})
	}
}

// takenBy is what a session takes of one task.
func takenBy(b *testing.B, s *Session, pid int) kcdata.LinuxUserTaken {
	b.Helper()
	_, snap, _ := captureWhole(b, s, Request{Pids: []int{pid}})
	return *snap.UserTaken
}

func startDeep(b *testing.B, flag string, threads, depth int) (pid int) {
	b.Helper()
	bin := compiled(b, deepThreads, "-O1", "-fno-omit-frame-pointer", flag, "-fno-optimize-sibling-calls", "-pthread")
	return startChild(b, exec.Command(bin, fmt.Sprint(threads), fmt.Sprint(depth)), "ready").pid
}
