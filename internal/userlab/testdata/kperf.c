// kperf block|spin DEPTH: a thread DEPTH calls of recurse_a and recurse_b deep,
// then in pause(2) for ever, or in a loop in user mode.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kperf.h"

volatile int kperf_after;

struct orders {
	int depth;
	void (*leaf)(void);
};

KEEP void leaf_blocked(void)
{
	for (;;) {
		pause();
		kperf_after++;
	}
}

KEEP void leaf_spinning(void)
{
	for (;;)
		kperf_after++;
}

KEEP void *kperf_thread(void *arg)
{
	struct orders *o = arg;

	printf("ready %ld\n", syscall(SYS_gettid));
	fflush(stdout);
	recurse_a(o->depth, o->leaf);
	kperf_after++;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	struct orders o;

	if (argc != 3)
		return 2;
	o.depth = atoi(argv[2]);
	o.leaf = strcmp(argv[1], "spin") ? leaf_blocked : leaf_spinning;
	if (o.depth < 1 || pthread_create(&t, NULL, kperf_thread, &o))
		return 1;
	pthread_join(t, NULL);
	return 0;
}
