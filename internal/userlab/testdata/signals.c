// Threads asleep inside a signal handler: raised by the thread itself, sent to
// one asleep in a system call, sent to one in user mode; each on the thread's
// own stack and on a signal stack.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, noipa))

static volatile int after, inside;
static int empty[2];

KEEP void handler_sleeps(void)
{
	char c;

	__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST);
	while (read(empty[0], &c, 1) != 1)
		after++;
}

static void handler(int sig)
{
	handler_sleeps();
	after++;
}

KEEP void by_itself(void) { raise(SIGUSR1); after++; }
KEEP void in_call(void) { char c; read(empty[0], &c, 1); after++; }
KEEP void in_user_mode(void) { for (;;) after++; }

static void (*const ways[])(void) = { by_itself, in_call, in_user_mode };

static void *own(void *way)
{
	((void (*)(void))way)();
	after++;
	return NULL;
}

static void *apart(void *way)
{
	stack_t s = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };

	sigaltstack(&s, NULL);
	((void (*)(void))way)();
	after++;
	return NULL;
}

int main(void)
{
	struct sigaction on_stack = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER };
	pthread_t t[6];
	int i;

	if (pipe(empty) || sigaction(SIGUSR1, &on_stack, NULL))
		return 1;
	for (i = 0; i < 6; i++)
		if (pthread_create(&t[i], NULL, i < 3 ? own : apart, (void *)ways[i % 3]))
			return 1;
	usleep(50000); // they are where they wait, or the handler finds them on the way
	for (i = 0; i < 6; i++)
		if (i % 3)
			pthread_kill(t[i], SIGUSR1);
	while (inside < 6)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	pthread_join(t[0], NULL);
	return 0;
}
