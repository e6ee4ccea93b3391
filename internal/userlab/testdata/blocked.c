// One thread per way to wait, each a few calls deep; with an argument one more
// that runs in user mode.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, noipa))
#define FOREVER 1000000

static volatile int after;
static int empty[2], sock[2];
static pthread_mutex_t locked = PTHREAD_MUTEX_INITIALIZER, free_one = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none;

static void in_read(void) { char c; read(empty[0], &c, 1); }
static void in_poll(void) { struct pollfd p = { empty[0], POLLIN, 0 }; poll(&p, 1, -1); }
static void in_select(void) { fd_set s; FD_ZERO(&s); FD_SET(empty[0], &s); select(empty[0] + 1, &s, NULL, NULL, NULL); }
static void in_nanosleep(void) { struct timespec t = { FOREVER, 0 }; nanosleep(&t, NULL); }
static void in_mutex(void) { pthread_mutex_lock(&locked); }
static void in_cond(void) { pthread_mutex_lock(&free_one); pthread_cond_wait(&never, &free_one); }
static void in_sem(void) { sem_wait(&none); }
static void in_recv(void) { char c; recv(sock[0], &c, 1, 0); }
static void in_sigwait(void) { sigset_t s; int n; sigemptyset(&s); sigaddset(&s, SIGUSR2); sigwait(&s, &n); }
static void in_epoll(void)
{
	int fd = epoll_create1(0);
	struct epoll_event e = { .events = EPOLLIN };

	epoll_ctl(fd, EPOLL_CTL_ADD, empty[0], &e);
	epoll_wait(fd, &e, 1, -1);
}
static void in_qsort(void);
static void in_user_mode(void) { for (;;) after++; }

static void (*const ways[])(void) = { in_read, in_poll, in_select, in_nanosleep, in_mutex,
	in_cond, in_sem, in_recv, in_sigwait, in_epoll, in_qsort };

// A callback out of the library: its frames lie between ours.
static int compare(const void *a, const void *b)
{
	in_read();
	after++;
	return 0;
}

static void in_qsort(void)
{
	int some[3] = { 3, 2, 1 };

	qsort(some, 3, sizeof some[0], compare);
	after++;
}

KEEP void deeper(int depth, void (*way)(void))
{
	volatile char room[100]; // a frame of another size in each

	room[depth] = depth;
	if (depth > 0)
		deeper(depth - 1, way);
	else
		for (;;)
			way();
	after += room[depth];
}

KEEP void with_alloca(int depth, void (*way)(void))
{
	volatile char *room = __builtin_alloca(depth * 50 + 10); // no CFA from the stack pointer

	room[0] = 1;
	deeper(depth, way);
	after += room[0];
}

static void *thread(void *way)
{
	with_alloca(4, (void (*)(void))way);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t;
	unsigned i;
	sigset_t s;

	sigemptyset(&s);
	sigaddset(&s, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &s, NULL);
	if (pipe(empty) || socketpair(AF_UNIX, SOCK_STREAM, 0, sock) || sem_init(&none, 0, 0))
		return 1;
	pthread_mutex_lock(&locked);
	for (i = 0; i < sizeof ways / sizeof ways[0]; i++)
		if (pthread_create(&t, NULL, thread, (void *)ways[i]))
			return 1;
	if (argc > 1 && pthread_create(&t, NULL, thread, (void *)in_user_mode))
		return 1;
	puts("ready");
	fflush(stdout);
	pthread_join(t, NULL);
	return 0;
}
