package snapshot

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/kcdata"
)

// blockedThreads is a C program of many threads that each read a pipe of their own, whose other end
// the process has too. Idle descriptors, unix pairs and duplicates, are had by its children, since a
// process may not have many everywhere.
const blockedThreads = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
static int check(int r)
{
	if (r < 0) {
		perror("blocked");
		exit(1);
	}
	return r;
}
static void *block(void *arg)
{
	int p[2];
	char c;
	check(pipe(p));
	for (;;)
		read(p[0], &c, 1);
}
static void idle(int pairs, int dups)
{
	int done[2], p[2], most = 18000;
	char c;
	check(pipe(done));
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
			check(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
		for (int i = 0; i < more; i++)
			check(dup(done[0]));
		write(done[1], "", 1);
		for (;;)
			pause();
	}
}
int main(int argc, char **argv)
{
	struct rlimit all;
	pthread_t t;
	check(getrlimit(RLIMIT_NOFILE, &all));
	all.rlim_cur = all.rlim_max;
	check(setrlimit(RLIMIT_NOFILE, &all));
	idle(atoi(argv[2]), atoi(argv[3]));
	for (int i = 1; i < atoi(argv[1]); i++)
		if (pthread_create(&t, 0, block, 0))
			return 1;
	usleep(500000);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
`

// TestPassIsBounded: among a million descriptors, the pass ends in its second, and either
// looked at all or says that it did not. The ends that it found are right.
func TestPassIsBounded(t *testing.T) {
	testneed.Lab(t, testneed.Time)
	requireBPF(t)
	testneed.Slow(t)
	n := testneed.Length(100_000, 1_000_000)
	bin := compiled(t, blockedThreads, "-O1", "-pthread")
	pid := startChild(t, exec.Command(bin, "51", "1000", fmt.Sprint(n-2000)), "ready").pid
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
