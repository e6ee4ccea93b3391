// Asks the clock for ever: its stack often begins in the vDSO.
#include <stdio.h>
#include <time.h>

static volatile long after;

__attribute__((noinline, noclone)) void ask_the_clock(void)
{
	struct timespec t;

	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		after += t.tv_nsec;
	}
}

int main(void)
{
	puts("ready");
	fflush(stdout);
	ask_the_clock();
	return after;
}
