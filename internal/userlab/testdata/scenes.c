// What a person on call finds on a machine that is slow or hangs, by names that services have.
//   scenes NAME WORD...
// When all of it is there it says who plays which role: ready hog0=1234 service=1235
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static int life; // seconds after which whatever takes CPU time ends by itself

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void nap_for_ever(void)
{
	for (;;)
		pause();
}

static void spin(double seconds)
{
	for (double end = now() + seconds; now() < end;)
		for (volatile int i = 0; i < 10000; i++)
			;
}

// child is a process of this name, which ends with the one that made it.
static pid_t child(const char *name)
{
	pid_t us = getpid(), pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != us)
			_exit(1);
		prctl(PR_SET_NAME, name);
	}
	return pid;
}

static void thread(void *(*f)(void *), void *arg, size_t stack)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	if (stack)
		pthread_attr_setstacksize(&a, stack);
	if (pthread_create(&t, &a, f, arg))
		die("pthread_create");
}

static void ready(void) { printf("\n"); fflush(stdout); }

// join puts this process, and all that it will make, into a control group.
static void join(const char *procs)
{
	FILE *f = fopen(procs, "w");

	if (!f || fprintf(f, "%d", getpid()) < 0 || fclose(f))
		die(procs);
}

// abba NAME BEHIND IDLE: two threads that lock two mutexes crosswise, others behind them, and
// some that wait for work.
static pthread_mutex_t accounts = PTHREAD_MUTEX_INITIALIZER, ledger = PTHREAD_MUTEX_INITIALIZER, queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;

static void *transfer(void *crosswise)
{
	pthread_mutex_lock(crosswise ? &ledger : &accounts);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(crosswise ? &accounts : &ledger);
	return NULL;
}

static void *balance(void *of_ledger)
{
	pthread_mutex_lock(of_ledger ? &ledger : &accounts);
	return NULL;
}

static void *idle_worker(void *arg)
{
	pthread_mutex_lock(&queue);
	for (;;)
		pthread_cond_wait(&work, &queue);
	return arg;
}

static void abba(char **w)
{
	int behind = atoi(w[1]), idle = atoi(w[2]);

	pthread_barrier_init(&both, NULL, 3);
	thread(transfer, NULL, 0);
	thread(transfer, &both, 0);
	pthread_barrier_wait(&both);
	for (int i = 0; i < behind; i++)
		thread(balance, i % 2 ? &both : NULL, 0);
	for (int i = 0; i < idle; i++)
		thread(idle_worker, NULL, 0);
}

// hogs NAME COUNT SERVICE: as many that compute, and a service that would.
static void hogs(char **w)
{
	pid_t pid;

	for (int i = 0; i < atoi(w[1]); i++) {
		if ((pid = child(w[0])) == 0) {
			spin(life);
			_exit(0);
		}
		printf(" hog%d=%d", i, pid);
	}
	if ((pid = child(w[2])) == 0) {
		spin(life);
		_exit(0);
	}
	printf(" service=%d", pid);
}

// storm NAME WIDTH MS: so many children at any time, each of which computes for MS and ends. They
// stand behind the one that makes them, which would not come to that otherwise.
static void storm(char **w)
{
	int width = atoi(w[1]), alive = 0;

	ready();
	for (double end = now() + life; now() < end; alive--) {
		for (; alive < width; alive++)
			if (child(w[0]) == 0) {
				nice(10);
				spin(atoi(w[2]) / 1e3);
				_exit(0);
			}
		wait(NULL);
	}
	while (wait(NULL) > 0)
		;
}

// leak NAME COUNT: a thread for each session, of which none ends.
static void *session(void *arg)
{
	nap_for_ever();
	return arg;
}

static void leak(char **w)
{
	for (int i = 1; i < atoi(w[1]); i++)
		thread(session, NULL, 16384);
}

// thrash NAME COUNT PROCS FILE MIB: in a control group, read a file that is bigger than its
// memory, again and again.
static void thrash(char **w)
{
	off_t size = (off_t)atoi(w[4]) << 20;
	pid_t pid;

	join(w[2]);
	for (int i = 0; i < atoi(w[1]); i++) {
		if ((pid = child(w[0])) == 0) {
			static char piece[PIECE];
			int fd = open(w[3], O_RDONLY);

			for (double end = now() + life; now() < end;)
				for (off_t at = 0; at < size; at += PIECE)
					if (pread(fd, piece, PIECE, at) < 0)
						die(w[3]);
			_exit(0);
		}
		printf(" reader%d=%d", i, pid);
	}
}

// disk PROCS NAME FILE NAME FILE...: each reads its file past the page cache, in a control group
// whose disk is slow. The last writes.
static void disk(char **w)
{
	pid_t pid;

	for (int i = 1; w[i] && w[i + 1]; i += 2) {
		if ((pid = child(w[i])) == 0) {
			int fd = open(w[i + 1], O_RDWR | O_DIRECT);
			void *piece;

			if (fd < 0 || posix_memalign(&piece, 4096, PIECE))
				die(w[i + 1]);
			join(w[0]);
			for (;;)
				if ((w[i + 2] ? pread(fd, piece, PIECE, 0) : pwrite(fd, piece, PIECE, 0)) < 0)
					die(w[i + 1]);
		}
		printf(" %s=%d", w[i], pid);
	}
}

// turns NAME: pools at rest, each of 6 whose members take turns: one waits for news with a lock held, the
// others for the lock. The news are of several sockets, a datagram, a job of a pipe, a signal of
// a condition variable, a line of a stream.
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int events, jobs[2];
static FILE *lines;

static void *leader(void *arg)
{
	for (struct epoll_event e;;) {
		pthread_mutex_lock(&turn);
		epoll_wait(events, &e, 1, -1);
		pthread_mutex_unlock(&turn);
	}
	return arg;
}

static void *job_taker(void *arg)
{
	for (char job;;) {
		pthread_mutex_lock(&turn);
		if (read(jobs[0], &job, 1) < 0)
			die("read");
		pthread_mutex_unlock(&turn);
	}
	return arg;
}

static void *receiver(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&turn);
		pthread_mutex_lock(&queue);
		pthread_cond_wait(&work, &queue);
		pthread_mutex_unlock(&queue);
		pthread_mutex_unlock(&turn);
	}
	return arg;
}

static void *line_reader(void *arg)
{
	char line[100];

	while (fgets(line, sizeof line, lines))
		;
	return arg;
}

static int datagrams(void)
{
	struct sockaddr_in any = { AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	if (s < 0 || bind(s, (struct sockaddr *)&any, sizeof any))
		die("bind");
	return s;
}

// datagram_taker opens the file of the lock anew: a lock of flock belongs to what was opened.
static void datagram_taker(int file, int s)
{
	char path[32];
	int lock;

	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if ((lock = open(path, O_RDWR)) < 0)
		die(path);
	for (char some[100];;) {
		flock(lock, LOCK_EX);
		recvfrom(s, some, sizeof some, 0, NULL, NULL);
		flock(lock, LOCK_UN);
	}
}

static void pool(const char *name, void *(*member)(void *))
{
	pid_t pid = child(name);

	if (pid == 0) {
		close(jobs[1]);
		for (int i = 0; i < 6; i++)
			thread(member, NULL, 0);
		nap_for_ever();
	}
	printf(" %s=%d", name, pid);
}

static void turns(char **w)
{
	struct epoll_event any = { EPOLLIN };
	int s = datagrams(), file = memfd_create(w[0], 0);
	pid_t pid;

	events = epoll_create1(0);
	if (file < 0 || pipe(jobs) || epoll_ctl(events, EPOLL_CTL_ADD, s, &any) || epoll_ctl(events, EPOLL_CTL_ADD, datagrams(), &any))
		die("turns");
	lines = fdopen(jobs[0], "r");
	pool("leaders", leader);
	pool("receivers", receiver);
	pool("jobs", job_taker);
	pool("lines", line_reader);
	if ((pid = child("datagrams")) == 0) {
		for (int i = 0; i < 5; i++)
			if (child("datagrams") == 0)
				datagram_taker(file, s);
		datagram_taker(file, s);
	}
	printf(" datagrams=%d", pid);
}

int main(int argc, char **argv)
{
	const char *scene = argv[1];
	char **w = argv + 3;

	if (argc < 4)
		return 2;
	life = atoi(argv[2]);
	prctl(PR_SET_NAME, strcmp(scene, "disk") ? w[0] : "disk");
	printf("ready leader=%d", getpid());
	if (!strcmp(scene, "abba"))
		abba(w);
	else if (!strcmp(scene, "hogs"))
		hogs(w);
	else if (!strcmp(scene, "storm"))
		storm(w);
	else if (!strcmp(scene, "leak"))
		leak(w);
	else if (!strcmp(scene, "thrash"))
		thrash(w);
	else if (!strcmp(scene, "disk"))
		disk(w);
	else if (!strcmp(scene, "turns"))
		turns(w);
	ready();
	nap_for_ever();
	return 0;
}
