// Threads and processes that hang, each in a way of its own, or that only look as if.
//   hang CASE [ARG...]       one of the cases of the table at the end; says who
//                            plays which role: ready a=1234 b=1235
//   hang nested TIDS CASE    the same in the inner of two new pid namespaces,
//                            where the threads have the numbers TIDS (1,2,3)
// When it says ready, the locks that are to be held are held, and those who are to
// wait for them are on their way. The test asks /proc whether they have come.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, noipa))
#define ROLES 16

// Of linux/futex.h, which musl-gcc does not find.
#define FUTEX_WAIT 0
#define FUTEX_WAITERS 0x80000000
#define FUTEX_TID_MASK 0x3fffffff

enum { NORMAL = PTHREAD_MUTEX_NORMAL, RECURSIVE = PTHREAD_MUTEX_RECURSIVE, CHECKED = PTHREAD_MUTEX_ERRORCHECK, ROBUST = 16, PI = 32, SHARED = 64 };

// The locks of one process. gdb reads them: see (*Hang).GlibcOwner.
pthread_mutex_t lock[8];
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_t joined;
static volatile int after; // work behind every call, so that none is a tail call

// What all processes of the case share.
struct common {
	pthread_mutex_t lock[4];
	atomic_int met, roles;
	struct { char name[16]; atomic_int tid; } role[ROLES];
};
struct common *common; // gdb reads it

static void die(const char *what)
{
	perror(what);
	_exit(1);
}

static void must(int err, const char *what)
{
	if (err) {
		errno = err;
		die(what);
	}
}

static void make(pthread_mutex_t *m, int type)
{
	pthread_mutexattr_t a;

	must(pthread_mutexattr_init(&a), "pthread_mutexattr_init");
	must(pthread_mutexattr_settype(&a, type & 15), "pthread_mutexattr_settype");
	if (type & ROBUST)
		must(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST), "pthread_mutexattr_setrobust");
	if (type & PI)
		must(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT), "pthread_mutexattr_setprotocol");
	if (type & SHARED)
		must(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED), "pthread_mutexattr_setpshared");
	must(pthread_mutex_init(m, &a), "pthread_mutex_init");
}

static void nap(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

KEEP void sleep_for_ever(void)
{
	for (;;)
		nap(1000000000);
	after++;
}

static void play(const char *name)
{
	int i = atomic_fetch_add(&common->roles, 1);

	strncpy(common->role[i].name, name, sizeof common->role[i].name - 1);
	atomic_store(&common->role[i].tid, syscall(SYS_gettid));
}

// meet waits for n threads, those of all processes together.
static void meet(int n)
{
	atomic_fetch_add(&common->met, 1);
	while (atomic_load(&common->met) < n)
		nap(1);
}

// in_futex waits until a thread of this process is in a futex call, and not for the
// words that it may pass on its way.
static void in_futex(int tid)
{
	char path[64], line[128];
	int there = 0;

	snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
	while (there < 3) {
		FILE *f = fopen(path, "r");

		nap(5);
		there = f && fgets(line, sizeof line, f) && atoi(line) == SYS_futex && line[0] != 'r' ? there + 1 : 0;
		if (f)
			fclose(f);
	}
}

static void ready(void)
{
	int i, n = atomic_load(&common->roles);

	printf("ready");
	for (i = 0; i < n; i++) {
		while (!atomic_load(&common->role[i].tid))
			nap(1);
		printf(" %s=%d", common->role[i].name, common->role[i].tid);
	}
	printf("\n");
	fflush(stdout);
}

// The tids that new threads of a nested case get.
static const char *numbers;

static void next_number(void)
{
	char text[16];
	int fd;

	if (!numbers)
		return;
	fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY);
	if (fd < 0)
		die("ns_last_pid");
	snprintf(text, sizeof text, "%d", (int)strtol(numbers, (char **)&numbers, 10) - 1);
	if (*numbers == ',')
		numbers++;
	if (write(fd, text, strlen(text)) < 0)
		die("write to ns_last_pid");
	close(fd);
}

static pthread_t start(void *(*run)(void *), void *arg)
{
	pthread_t t;

	next_number();
	must(pthread_create(&t, NULL, run, arg), "pthread_create");
	return t;
}

// A part is one thread's: it takes one lock, meets the others, and wants another.
struct part {
	const char *role;
	pthread_mutex_t *has, *wants; // either may be NULL
	int meets;
};

KEEP void take(pthread_mutex_t *m)
{
	pthread_mutex_lock(m);
	after++;
}

static void *run_part(void *arg)
{
	struct part *p = arg;

	play(p->role);
	if (p->has)
		take(p->has);
	meet(p->meets);
	if (p->wants)
		take(p->wants);
	sleep_for_ever();
	return NULL;
}

static void run_parts(struct part *p, int n)
{
	for (int i = 0; i < n; i++) {
		p[i].meets = n + 1;
		start(run_part, &p[i]);
	}
	meet(n + 1);
	ready();
	sleep_for_ever();
}

static pid_t child(void)
{
	pid_t us = getpid(), pid = fork();

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != us && getppid() != 0)
			_exit(1);
	}
	return pid;
}

// Two threads, each with the lock that the other wants, and one behind them.
static void abba(int type)
{
	struct part p[] = { { "a", &lock[0], &lock[1] }, { "b", &lock[1], &lock[0] }, { "behind", NULL, &lock[0] } };

	for (int i = 0; i < 2; i++)
		make(&lock[i], type);
	run_parts(p, 3);
}

// A cycle of three: p1 and p2 of one process, q of another.
static void cycle_of_three(int type)
{
	struct part p[] = { { "p1", &common->lock[0], &lock[0], 3 }, { "p2", &lock[0], &common->lock[1], 3 } };
	struct part q = { "q", &common->lock[1], &common->lock[0], 3 };

	make(&lock[0], NORMAL);
	make(&common->lock[0], type);
	make(&common->lock[1], type);
	if (child() == 0)
		run_part(&q);
	start(run_part, &p[0]);
	start(run_part, &p[1]);
	while (atomic_load(&common->roles) < 3)
		nap(1);
	ready();
	sleep_for_ever();
}

// t1 waits for t2, t2 for t3, t3 for t4, and t4 sleeps.
static void chain(int type)
{
	struct part p[] = { { "t1", NULL, &lock[2] }, { "t2", &lock[2], &lock[3] }, { "t3", &lock[3], &lock[4] }, { "t4", &lock[4], NULL } };

	for (int i = 2; i < 5; i++)
		make(&lock[i], type);
	run_parts(p, 4);
}

// A crowd behind one thread that sleeps.
static void crowd(int type)
{
	static char names[12][4];
	struct part p[13] = { { "holder", &lock[0], NULL } };

	make(&lock[0], type);
	for (int i = 0; i < 12; i++) {
		snprintf(names[i], sizeof names[i], "w%d", i);
		p[i + 1] = (struct part){ names[i], NULL, &lock[0] };
	}
	run_parts(p, 13);
}

// The first thread ends with the lock, and others of the process live: its number
// stays, as a zombie's.
static void zombie_owner(int type)
{
	static struct part w = { "waiter", NULL, &lock[0], 1 };

	make(&lock[0], type);
	play("owner");
	pthread_mutex_lock(&lock[0]);
	start(run_part, &w);
	while (atomic_load(&common->roles) < 2)
		nap(1);
	ready();
	syscall(SYS_exit, 0);
}

static void *end_with_lock(void *arg)
{
	pthread_mutex_lock(&lock[0]);
	return arg;
}

// A thread ends with the lock, and its number goes with it.
static void gone_owner(int type)
{
	struct part w = { "waiter", NULL, &lock[0] };
	pthread_t t;

	make(&lock[0], type);
	t = start(end_with_lock, NULL);
	pthread_join(t, NULL);
	run_parts(&w, 1);
}

static void *thief(void *arg)
{
	int value;

	play("thief");
	while ((value = *(volatile int *)&lock[0]) & FUTEX_TID_MASK) // glibc's __lock, musl's _m_lock is 4 further
		syscall(SYS_futex, &lock[0], FUTEX_WAIT, value | FUTEX_WAITERS, NULL, NULL, 0);
	sleep_for_ever();
	return arg;
}

static atomic_int may_end;

static void *robust_owner(void *arg)
{
	pthread_mutex_lock(&lock[0]);
	meet(2);
	while (!atomic_load(&may_end))
		nap(1);
	return arg;
}

// The kernel marks a robust mutex whose owner ends, and wakes one waiter. That one is
// a thief, which does not take the lock: whoever waits behind it waits for a dead
// owner. It comes before the waiter, or it would not be woken.
static void robust_owner_died(int type)
{
	static struct part w = { "waiter", NULL, &lock[0], 0 };
	pthread_t owner;

	make(&lock[0], type);
	owner = start(robust_owner, NULL);
	meet(2);
	__atomic_or_fetch((int *)&lock[0], FUTEX_WAITERS, __ATOMIC_SEQ_CST);
	start(thief, NULL);
	while (!atomic_load(&common->role[0].tid))
		nap(1);
	in_futex(common->role[0].tid);
	start(run_part, &w);
	while (!atomic_load(&common->role[1].tid))
		nap(1);
	in_futex(common->role[1].tid);
	atomic_store(&may_end, 1);
	pthread_join(owner, NULL);
	ready();
	sleep_for_ever();
}

// The same process shares a lock with another, which sleeps with it.
static void holder(int type)
{
	struct part h = { "holder", &common->lock[0], NULL, 2 }, w = { "waiter", NULL, &common->lock[0], 2 };

	make(&common->lock[0], type);
	if (child() == 0)
		run_part(&h);
	start(run_part, &w);
	while (atomic_load(&common->roles) < 2)
		nap(1);
	ready();
	sleep_for_ever();
}

KEEP void wait_for_nobody(void)
{
	pthread_mutex_lock(&lock[0]);
	pthread_cond_wait(&never, &lock[0]);
	after++;
}

static void *in_condvar(void *arg)
{
	play("waiter");
	meet(2);
	wait_for_nobody();
	return arg;
}

static void condvar(int type)
{
	make(&lock[0], type);
	start(in_condvar, NULL);
	meet(2);
	ready();
	sleep_for_ever();
}

static void *rw_holder(void *arg)
{
	play("holder");
	must(arg ? pthread_rwlock_wrlock(&rw) : pthread_rwlock_rdlock(&rw), "rwlock");
	meet(2);
	sleep_for_ever();
	return NULL;
}

static void *rw_writer(void *arg)
{
	play("writer");
	pthread_rwlock_wrlock(&rw);
	after++;
	return arg;
}

// A writer behind another writer, or behind a reader.
static void rwlock(int writer)
{
	start(rw_holder, writer ? &rw : NULL);
	meet(2);
	start(rw_writer, NULL);
	while (atomic_load(&common->roles) < 2)
		nap(1);
	ready();
	sleep_for_ever();
}

static void *hangs(void *arg)
{
	play("hangs");
	sleep_for_ever();
	return arg;
}

static void *joins(void *arg)
{
	play("joins");
	meet(2);
	pthread_join(joined, NULL);
	after++;
	return arg;
}

static void join(int type)
{
	joined = start(hangs, NULL);
	start(joins, NULL);
	meet(2);
	while (atomic_load(&common->roles) < 2)
		nap(1);
	ready();
	sleep_for_ever();
}

// A tracer stops the holder of a lock.
static void traced(int type)
{
	struct part h = { "holder", &common->lock[0], NULL, 2 }, w = { "waiter", NULL, &common->lock[0], 2 };
	pid_t pid;
	int status;

	make(&common->lock[0], type);
	if ((pid = child()) == 0)
		run_part(&h);
	start(run_part, &w);
	while (atomic_load(&common->met) < 2)
		nap(1);
	if (child() == 0) {
		play("tracer");
		if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL))
			die("ptrace");
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
			die("waitpid of the traced");
		sleep_for_ever();
	}
	while (atomic_load(&common->roles) < 3)
		nap(1);
	ready();
	sleep_for_ever();
}

// A healthy program: 64 threads that take up to three of eight locks, always in this
// order, and work with them for a microsecond to a millisecond.
static void *contends(void *arg)
{
	unsigned seed = (unsigned)(size_t)arg;

	for (;;) {
		unsigned first = rand_r(&seed) % 6, us = 1 << rand_r(&seed) % 11;
		struct timespec now, end;

		for (unsigned i = 0; i < 3; i++)
			pthread_mutex_lock(&lock[first + i]);
		if (us > 100) {
			end = (struct timespec){ 0, us * 1000 };
			nanosleep(&end, NULL);
		} else {
			clock_gettime(CLOCK_MONOTONIC, &end);
			do
				clock_gettime(CLOCK_MONOTONIC, &now);
			while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec - end.tv_nsec < us * 1000);
		}
		for (unsigned i = 3; i-- > 0;)
			pthread_mutex_unlock(&lock[first + i]);
	}
	return arg;
}

static void healthy(int type)
{
	for (int i = 0; i < 8; i++)
		make(&lock[i], type);
	play("first");
	for (long i = 0; i < 64; i++)
		start(contends, (void *)(i + 1));
	ready();
	sleep_for_ever();
}

static const struct { const char *name; void (*run)(int); int arg; } cases[] = {
	{ "abba", abba, NORMAL }, { "abba-recursive", abba, RECURSIVE }, { "abba-errorcheck", abba, CHECKED },
	{ "abba-robust", abba, ROBUST }, { "cycle", cycle_of_three, SHARED }, { "pi-chain", chain, PI },
	{ "crowd", crowd, NORMAL }, { "zombie-owner", zombie_owner, NORMAL }, { "gone-owner", gone_owner, NORMAL },
	{ "robust-died", robust_owner_died, ROBUST }, { "holder", holder, SHARED }, { "condvar", condvar, NORMAL },
	{ "rw-writer", rwlock, 1 }, { "rw-reader", rwlock, 0 }, { "join", join, 0 }, { "traced", traced, SHARED },
	{ "healthy", healthy, NORMAL },
};

static int run_case(const char *name)
{
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (!strcmp(cases[i].name, name))
			cases[i].run(cases[i].arg);
	fprintf(stderr, "no such case: %s\n", name);
	return 2;
}

// inside makes a new pid namespace and goes on as its second process, or rather as
// the first one's child: the first of a namespace is like no other.
static void inside(void)
{
	if (unshare(CLONE_NEWPID))
		die("unshare");
	for (int i = 0; i < 2; i++)
		if (child() != 0) {
			waitpid(-1, NULL, 0);
			_exit(1);
		}
}

// reads waits in read(2) of a file, for the test that makes it wait.
static int reads(const char *path)
{
	char some[4096];
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		die(path);
	play("reader");
	ready();
	while (read(fd, some, sizeof some) > 0)
		;
	sleep_for_ever();
	return 0;
}

int main(int argc, char **argv)
{
	common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED)
		die("mmap");
	if (argc == 4 && !strcmp(argv[1], "nested")) {
		inside();
		inside();
		numbers = argv[2];
		return run_case(argv[3]);
	}
	if (argc == 3 && !strcmp(argv[1], "read"))
		return reads(argv[2]);
	return argc == 2 ? run_case(argv[1]) : 2;
}
