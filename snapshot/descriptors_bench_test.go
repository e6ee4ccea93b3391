package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"stackshot/internal/engine"
	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// blockedThreads is a C program of many threads, each of which waits at files of its own
// (poll and epoll: at four, which two threads share), whose other ends it has too. Idle
// descriptors, unix pairs and duplicates, are had by its children, since a process may not
// have many everywhere.
const blockedThreads = `
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
static int listener;
static struct sockaddr_in at = { .sin_family = AF_INET };
static int check(int r)
{
	if (r < 0) {
		perror("blocked");
		exit(1);
	}
	return r;
}
static int a_pipe(int p[2]) { check(pipe(p)); return p[0]; }
static int a_unix(int p[2]) { check(socketpair(AF_UNIX, SOCK_STREAM, 0, p)); return p[0]; }
static int a_tcp(void)
{
	int s = check(socket(AF_INET, SOCK_STREAM, 0));
	check(connect(s, (void *)&at, sizeof(at)));
	check(accept(listener, 0, 0));
	return s;
}
struct work { char how; int fds[4]; };
static void *block(void *arg)
{
	struct work *w = arg;
	struct pollfd set[4];
	struct epoll_event e = { .events = EPOLLIN };
	char c;
	for (;;)
		switch (w->how) {
		case 'p':
			for (int i = 0; i < 4; i++)
				set[i] = (struct pollfd){ .fd = w->fds[i], .events = POLLIN };
			poll(set, 4, -1);
			break;
		case 'e':
			epoll_wait(w->fds[0], &e, 1, -1);
			break;
		case 's':
			recv(w->fds[0], &c, 1, 0);
			break;
		default:
			read(w->fds[0], &c, 1);
		}
}
static struct work *ready(const char *kind, int i)
{
	static const char *mix[] = { "pipe", "unix", "tcp", "poll", "epoll" };
	static int set[5][4], p[2];
	int *mine = set[i % 5];
	struct work *w = calloc(1, sizeof(*w));
	struct epoll_event e = { .events = EPOLLIN };
	if (!strcmp(kind, "mix"))
		kind = mix[i % 5];
	else
		mine = set[0];
	w->how = 'r';
	if (!strcmp(kind, "pipe"))
		w->fds[0] = a_pipe(p);
	else if (!strcmp(kind, "unix"))
		w->how = 's', w->fds[0] = a_unix(p);
	else if (!strcmp(kind, "tcp"))
		w->how = 's', w->fds[0] = a_tcp();
	else {
		int epfd = *kind == 'e' ? check(epoll_create1(0)) : -1;
		if (i & 1 || !mine[0])
			a_pipe(mine), a_unix(mine + 2);
		memcpy(w->fds, mine, sizeof(w->fds));
		for (int k = 0; k < 4 && epfd >= 0; k++)
			check(epoll_ctl(epfd, EPOLL_CTL_ADD, w->fds[k], &e));
		w->how = *kind;
		if (epfd >= 0)
			w->fds[0] = epfd;
	}
	return w;
}
static void idle(int pairs, int dups)
{
	int done[2], p[2], most = 18000;
	char c;
	a_pipe(done);
	while (pairs > 0 || dups > 0) {
		int now = pairs > most / 2 ? most / 2 : pairs, more = most - 2 * now;
		if (more > dups)
			more = dups;
		pairs -= now, dups -= more;
		if (check(fork())) {
			check(read(done[0], &c, 1));
			continue;
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < now; i++)
			a_unix(p);
		for (int i = 0; i < more; i++)
			check(dup(done[0]));
		write(done[1], "", 1);
		for (;;)
			pause();
	}
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	struct rlimit all;
	socklen_t len = sizeof(at);
	pthread_attr_t a;
	check(getrlimit(RLIMIT_NOFILE, &all));
	all.rlim_cur = all.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &all));
	idle(atoi(argv[3]), atoi(argv[4]));
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = check(socket(AF_INET, SOCK_STREAM, 0));
	check(bind(listener, (void *)&at, len));
	check(listen(listener, 64));
	check(getsockname(listener, (void *)&at, &len));
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	for (int i = 1; i < n; i++) {
		pthread_t t;
		if (pthread_create(&t, &a, block, ready(argv[2], i)))
			return 1;
	}
	usleep(500000);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
`

// startBlocked starts the program.
func startBlocked(tb testing.TB, threads int, kind string, pairs, dups int) (pid int) {
	tb.Helper()
	src, bin := tb.TempDir()+"/blocked.c", tb.TempDir()+"/blocked"
	if err := os.WriteFile(src, []byte(blockedThreads), 0o600); err != nil {
		tb.Fatal(err)
	}
	testneed.Program(tb, "gcc")
	if out, err := exec.Command("gcc", "-O1", "-pthread", "-o", bin, src).CombinedOutput(); err != nil {
		tb.Fatalf("gcc: %v\n%s", err, out)
	}
	return startChild(tb, exec.Command(bin, fmt.Sprint(threads), kind, fmt.Sprint(pairs), fmt.Sprint(dups)), "ready").pid
}

// BenchmarkFiles measures what the records of open files add to the stop of a machine with
// 4,000 threads that wait at descriptors.
//
//	on/off             median ratio of the time per thread, within a round
//	off-ns/thread      without
//	known              threads with a record of a file
func BenchmarkFiles(b *testing.B) {
	for _, engineName := range []string{EngineTrap, EnginePull} {
		for _, kind := range []string{"pipe", "unix", "tcp", "poll", "epoll", "mix"} {
			b.Run(engineName+"/"+kind, func(b *testing.B) {
				requireBPF(b)
				pid := startBlocked(b, 4000, kind, 0, 0)
				o := Options{Engine: engineName, Latency: LatencyOff, Wait: WaitOff}
				off := benchSessionOf(b, o, engine.Hooks{})
				o.Wait = WaitOn
				on := benchSessionOf(b, o, engine.Hooks{})
				r := &rounds{entrants: []*entrant{stopped("off", off), stopped("on", on)}}
				r.run(b)
				r.reportRatio(b, "on", "off")
				b.ReportMetric(median(r.perThread("off")), "off-ns/thread")
				b.ReportMetric(float64(withFiles(b, on, pid)), "known")
			})
		}
	}
}

// withFiles counts a task's threads that have a record of a file.
func withFiles(b *testing.B, s *Session, pid int) (n int) {
	b.Helper()
	_, snap, _ := captureWhole(b, s, Request{Pids: []int{pid}})
	for _, th := range tasksByID(snap)[uint64(pid)].Threads {
		if len(th.Files) > 0 {
			n++
		}
	}
	return n
}

// manyDescriptors are the sizes of the pass's benchmark.
var manyDescriptors = []int{20_000, 100_000, 1_000_000}

// BenchmarkEndPass measures the pass over open files that follows the release: 200 threads
// wait at files, among so many descriptors.
//
//	pass-ms      median of the pass alone
//	after-ms     of all that is read after the release for ends
//	looked       descriptors that it looked at
//	timeup       captures in which its time was up
func BenchmarkEndPass(b *testing.B) {
	for _, n := range manyDescriptors {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			requireBPF(b)
			pid := startBlocked(b, 201, "mix", 10_000, n-20_000)
			s := benchSessionOf(b, Options{Latency: LatencyOff, UserStacks: UserStacksOff}, engine.Hooks{})
			var pass, total, looked []float64
			late := 0
			for b.Loop() {
				_, snap, _ := captureOnce(b, s, Request{Pids: []int{pid}})
				f := snap.FilesTaken
				if f == nil || f.Sources&kcdata.FilesHasPass == 0 {
					b.Fatalf("no pass over open files: %+v", f)
				}
				pass, total, looked = append(pass, float64(f.PassNs)/1e6), append(total, float64(f.TotalNs)/1e6), append(looked, float64(f.Looked))
				if f.Flags&kcdata.FilesTimeUp != 0 {
					late++
				}
			}
			b.ReportMetric(median(pass), "pass-ms")
			b.ReportMetric(median(total), "after-ms")
			b.ReportMetric(median(looked), "looked")
			b.ReportMetric(float64(late), "timeup")
		})
	}
}

// TestPassIsBounded: among a million descriptors, the pass ends in its second, and either
// looked at all or says that it did not. The ends that it found are right.
func TestPassIsBounded(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	requireBPF(t)
	testneed.Slow(t)
	n := testneed.Length(100_000, 1_000_000)
	pid := startBlocked(t, 51, "mix", 1000, n-2000)
	_, snap, _ := takeWhole(t, Options{UserStacks: UserStacksOff}, Request{Pids: []int{pid}})
	f := snap.FilesTaken
	if f == nil || f.Sources&kcdata.FilesHasPass == 0 {
		t.Fatalf("no pass over open files: %+v", f)
	}
	late := f.Flags&kcdata.FilesTimeUp != 0
	t.Logf("looked at %d in %v, %v in all, time was up %v", f.Looked, time.Duration(f.PassNs), time.Duration(f.TotalNs), late)
	if f.Looked < uint64(n) && !late || time.Duration(f.TotalNs) > slow(1200*time.Millisecond) {
		t.Errorf("not all descriptors, or too long: %+v", *f)
	}
	waitedAt := map[uint64]bool{}
	for _, th := range tasksByID(snap)[uint64(pid)].Threads {
		for i := range th.Files {
			waitedAt[th.Files[i].Object] = true
		}
	}
	for _, e := range snap.Ends {
		if !waitedAt[e.Of] || e.Of != e.Object && e.Of != e.Peer && e.Flags&(kcdata.EndPair|kcdata.EndListens|kcdata.EndServes|kcdata.EndLocks) == 0 {
			t.Errorf("an end of nothing that is waited at: %+v", e)
		}
	}
	if !late && len(snap.Ends) < 50 {
		t.Errorf("%d ends", len(snap.Ends))
	}
}
