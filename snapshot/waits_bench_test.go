package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"stackshot/internal/bpf/bpftest"
	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// waitingThreads is a C program of many threads that wait for one lock: a glibc mutex
// that its first thread holds, or the mutex of a pipe, which a writer holds that sleeps
// at a page nobody brings in (userfaultfd).
const waitingThreads = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static char *page;
static void *futex(void *arg)
{
	pthread_mutex_lock(&lock);
	return arg;
}
static void *hold(void *arg)
{
	write(ends[1], page, 4096);
	return arg;
}
static void *behind(void *arg)
{
	char c;
	read(ends[0], &c, 1);
	return arg;
}
static void start(void *(*f)(void *))
{
	pthread_t t;
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	if (pthread_create(&t, &a, f, 0))
		exit(1);
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]), d = !strcmp(argv[2], "D");
	pthread_mutex_lock(&lock);
	if (d) {
		struct uffdio_api api = { .api = UFFD_API };
		struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
		int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
		page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		reg.range.start = (unsigned long)page, reg.range.len = 4096;
		if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg) || pipe(ends))
			return 1;
		start(hold);
		usleep(200000);
	}
	for (int i = 2; i < n; i++)
		start(d ? behind : futex);
	usleep(500000);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
`

// BenchmarkWaits measures what the wait records add to the stop of a machine with 4,000
// threads that wait: for a futex; in D for a mutex of the kernel that each of them names;
// and for the same where none names it, so that each stack is scanned.
//
//	on/off             median ratio of the time per thread, within a round
//	off-ns/thread      without
//	known              of the waiters, by record
func BenchmarkWaits(b *testing.B) {
	for _, engineName := range []string{EngineTrap, EnginePull} {
		for _, w := range []struct {
			name, world string
			knobs       bpftest.Knobs
		}{{"futex", "S", bpftest.Knobs{}}, {"field", "D", bpftest.Knobs{}}, {"scan", "D", bpftest.Knobs{NoFields: true}}} {
			b.Run(engineName+"/"+w.name, func(b *testing.B) {
				requireBPF(b)
				pid := startWaiting(b, 4000, w.world)
				o := Options{Engine: engineName, Latency: LatencyOff, Wait: WaitOff}
				off := benchSessionOf(b, o, engine.Hooks{Specs: w.knobs})
				o.Wait = WaitOn
				on := benchSessionOf(b, o, engine.Hooks{Specs: w.knobs})
				r := &rounds{entrants: []*entrant{stopped("off", off), stopped("on", on)}}
				r.run(b)
				r.reportRatio(b, "on", "off")
				b.ReportMetric(median(r.perThread("off")), "off-ns/thread")
				b.ReportMetric(float64(knownBy(b, on, pid)), "known")
			})
		}
	}
}

// knownBy counts a task's threads of which a session knows what they wait for.
func knownBy(b *testing.B, s *Session, pid int) (n int) {
	b.Helper()
	_, snap, _ := captureWhole(b, s, Request{Pids: []int{pid}})
	for _, th := range tasksByID(snap)[uint64(pid)].Threads {
		if len(th.Futexes) > 0 || th.Wait != nil && th.Wait.Kind != kcdata.LockNone {
			n++
		}
	}
	return n
}

func startWaiting(b *testing.B, threads int, world string) (pid int) {
	b.Helper()
	src, bin := b.TempDir()+"/waiting.c", b.TempDir()+"/waiting"
	if err := os.WriteFile(src, []byte(waitingThreads), 0o600); err != nil {
		b.Fatal(err)
	}
	testneed.Program(b, "gcc")
	if out, err := exec.Command("gcc", "-O1", "-pthread", "-o", bin, src).CombinedOutput(); err != nil {
		b.Fatalf("gcc: %v\n%s", err, out)
	}
	return startChild(b, exec.Command(bin, fmt.Sprint(threads), world), "ready").pid
}
