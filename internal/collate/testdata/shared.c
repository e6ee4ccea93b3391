// Processes that share two mutexes, two of them in a pid namespace of their own. Their numbers in the
// first namespace, one on a line with its part; the child of "first" is known by /proc. Then they
// sleep until this one is killed.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct shared { pthread_mutex_t outer, inner; volatile int locked; } *s;

static void forever(void) { for (;;) pause(); }

static int process(void) // it ends with its parent
{
	int pid = fork();
	if (!pid) prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

int main(void)
{
	int pid;
	pthread_mutexattr_t a;
	s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&s->outer, &a);
	pthread_mutex_init(&s->inner, &a);
	pthread_mutex_lock(&s->outer);
	setvbuf(stdout, 0, _IONBF, 0);
	printf("owner %d\n", getpid());
	if (!(pid = process())) { pthread_mutex_lock(&s->outer); forever(); }
	printf("waiter %d\n", pid);
	if (!(pid = process())) {
		while (!s->locked) usleep(1000);
		pthread_mutex_lock(&s->inner);
		forever();
	}
	printf("outside %d\n", pid);
	if (unshare(CLONE_NEWPID)) { perror("unshare"); return 1; }
	if (!(pid = process())) { // number 1 of the new namespace
		pthread_mutex_lock(&s->inner);
		if (!process()) { pthread_mutex_lock(&s->inner); forever(); }
		s->locked = 1;
		forever();
	}
	printf("first %d\n", pid);
	while (!s->locked) usleep(1000);
	printf("ready 0\n");
	forever();
}
