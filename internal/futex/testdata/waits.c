// Threads that wait for locks of the C library, each with the answer: "name waiter object owner lock"
// on a line, 0 where there is none. Then "ready", and it sleeps until it is killed.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC__
enum { MUTEX = 1, RWLOCK = 2, JOIN = 3, NORMAL = 1 };
#define GLIBC 1
#else
enum { MUTEX = 4, RWLOCK = 0, JOIN = 7, NORMAL = 5 };
#define GLIBC 0
#endif
enum { PI = 6 };

typedef struct {
	const char *name;
	int type, robust, shared, protocol, again, timed, fifo, init;
	pthread_mutex_t *m;
	sem_t held;
	int tid;
} lock;

static int self(void) { return syscall(SYS_gettid); }

// sleeps waits until the thread whose number *tid will be sleeps in futex(2), and returns the number.
static int sleeps(int *tid)
{
	char name[64], line[64];
	for (;; usleep(1000)) {
		int n = __atomic_load_n(tid, __ATOMIC_SEQ_CST);
		if (!n) continue;
		snprintf(name, sizeof name, "/proc/self/task/%d/syscall", n);
		FILE *f = fopen(name, "r");
		if (!f || !fgets(line, sizeof line, f)) { perror(name); exit(1); }
		fclose(f);
		if (line[0] != 'r' && strtol(line, 0, 10) == SYS_futex) return n;
	}
}

static void *forever(void *x) { for (;;) pause(); }

static pthread_t start(void *(*f)(void *), void *x)
{
	pthread_t t;
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	if (pthread_create(&t, &a, f, x)) { perror("thread"); exit(1); }
	return t;
}

static void fifo(lock *l)
{
	struct sched_param p = {.sched_priority = 1};
	if (l->fifo && pthread_setschedparam(pthread_self(), SCHED_FIFO, &p)) { fprintf(stderr, "no SCHED_FIFO\n"); exit(1); }
}

static void *holder(void *x)
{
	lock *l = x;
	fifo(l);
	for (int i = 0; i <= l->again; i++)
		pthread_mutex_lock(l->m);
	l->tid = self();
	sem_post(&l->held);
	return forever(0);
}

static void *dies(void *x)
{
	lock *l = x;
	pthread_mutex_lock(l->m);
	return 0;
}

static void *waiter(void *x)
{
	lock *l = x;
	struct timespec far = {.tv_sec = time(0) + 100000};
	fifo(l);
	l->tid = self();
	sem_post(&l->held);
	if (l->timed) pthread_mutex_timedlock(l->m, &far);
	else pthread_mutex_lock(l->m);
	return forever(0);
}

static int run(void *(*f)(void *), lock *l)
{
	sem_init(&l->held, 0, 0);
	start(f, l);
	sem_wait(&l->held);
	return l->tid;
}

static void mutex(lock l, int object, int named)
{
	lock *c = malloc(sizeof *c);
	*c = l;
	c->m = mmap(0, 4096, PROT_READ | PROT_WRITE, (l.shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
	if (l.init) {
		pthread_mutexattr_t a;
		pthread_mutexattr_init(&a);
		pthread_mutexattr_settype(&a, l.type);
		if (l.robust) pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
		if (l.shared) pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
		if (l.protocol) pthread_mutexattr_setprotocol(&a, l.protocol);
#ifdef __GLIBC__
		if (l.protocol == PTHREAD_PRIO_PROTECT) pthread_mutexattr_setprioceiling(&a, 2);
#endif
		pthread_mutex_init(c->m, &a);
	} else {
		*c->m = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	}
	if (l.robust == 2) pthread_join(start(dies, c), 0);
	int owner = run(holder, c);
	int waits = run(waiter, c);
	printf("%s %d %d %d %p\n", l.name, waits, object, named ? owner : 0, (void *)c->m);
	run(waiter, c); // a second one changes nothing
}

typedef struct { pthread_rwlock_t l; sem_t held; int tid; } rw;
static void *reads(void *x) { rw *r = x; r->tid = self(); pthread_rwlock_rdlock(&r->l); sem_post(&r->held); return forever(0); }
static void *writes(void *x) { rw *r = x; r->tid = self(); pthread_rwlock_wrlock(&r->l); sem_post(&r->held); return forever(0); }

static int rwrun(rw *r, void *(*f)(void *), int waits)
{
	r->tid = 0;
	start(f, r);
	if (waits) return sleeps(&r->tid);
	sem_wait(&r->held);
	return r->tid;
}

static void rwlocks(int kind, int shared)
{
	pthread_rwlockattr_t a;
	pthread_rwlockattr_init(&a);
	pthread_rwlockattr_setpshared(&a, shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
#ifdef __GLIBC__
	pthread_rwlockattr_setkind_np(&a, kind);
#endif
	rw *w = calloc(1, sizeof *w), *r = calloc(1, sizeof *r);
	pthread_rwlock_init(&w->l, &a), pthread_rwlock_init(&r->l, &a);
	int owner = rwrun(w, writes, 0) * GLIBC;
	printf("reader-behind-writer %d %d %d %p\n", rwrun(w, reads, 1), RWLOCK, owner, (void *)&w->l);
	printf("writer-behind-writer %d %d %d %p\n", rwrun(w, writes, 1), RWLOCK, owner, (void *)&w->l);
	rwrun(r, reads, 0);
	printf("writer-behind-reader %d %d 0 %p\n", rwrun(r, writes, 1), RWLOCK, (void *)&r->l);
	printf("writer-behind-waiting-writer %d %d 0 %p\n", rwrun(r, writes, 1), RWLOCK, (void *)&r->l);
	if (GLIBC && kind == 2) printf("reader-behind-waiting-writer %d %d 0 %p\n", rwrun(r, reads, 1), RWLOCK, (void *)&r->l);
}

static int joiner_tid, joined_tid;
static void *joined(void *x) { joined_tid = self(); return forever(0); }
static void *joins(void *x) { joiner_tid = self(); pthread_join(*(pthread_t *)x, 0); return 0; }
static void *joins_timed(void *x)
{
	struct timespec far = {.tv_sec = time(0) + 100000};
	joiner_tid = self();
	pthread_timedjoin_np(*(pthread_t *)x, 0, &far);
	return 0;
}

static int other_tid;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static pthread_barrier_t barrier;
static void *waits_cond(void *x) { other_tid = self(); pthread_mutex_lock(&cond_mutex); pthread_cond_wait(&cond, &cond_mutex); return 0; }
static void *waits_sem(void *x) { other_tid = self(); sem_wait(&sem); return 0; }
static void *waits_barrier(void *x) { other_tid = self(); pthread_barrier_wait(&barrier); return 0; }
static void *waits_stdio(void *x) { other_tid = self(); flockfile(stdin); return 0; }
static void *relocks(void *x) { other_tid = self(); pthread_mutex_lock(x); pthread_mutex_lock(x); return 0; }

static int other(void *(*f)(void *), void *x)
{
	other_tid = 0;
	start(f, x);
	return sleeps(&other_tid);
}

int main(int argc, char **argv)
{
	int fifos = argc > 1;
	setvbuf(stdout, 0, _IOLBF, 0);
	mutex((lock){.name = "static"}, NORMAL, GLIBC);
	mutex((lock){.name = "static-timed", .timed = 1}, NORMAL, GLIBC);
	mutex((lock){.name = "normal", .init = 1, .type = PTHREAD_MUTEX_NORMAL}, NORMAL, GLIBC);
	mutex((lock){.name = "normal-shared", .init = 1, .shared = 1}, NORMAL, GLIBC);
	mutex((lock){.name = "recursive", .init = 1, .type = PTHREAD_MUTEX_RECURSIVE}, MUTEX, 1);
	mutex((lock){.name = "recursive-thrice", .init = 1, .type = PTHREAD_MUTEX_RECURSIVE, .again = 2}, MUTEX, 1);
	mutex((lock){.name = "recursive-shared", .init = 1, .type = PTHREAD_MUTEX_RECURSIVE, .shared = 1, .timed = 1}, MUTEX, 1);
	mutex((lock){.name = "errorcheck", .init = 1, .type = PTHREAD_MUTEX_ERRORCHECK}, MUTEX, 1);
	mutex((lock){.name = "robust", .init = 1, .robust = 1}, MUTEX, 1);
	mutex((lock){.name = "robust-recursive", .init = 1, .robust = 1, .type = PTHREAD_MUTEX_RECURSIVE, .again = 1}, MUTEX, 1);
	mutex((lock){.name = "robust-shared", .init = 1, .robust = 1, .shared = 1, .type = PTHREAD_MUTEX_ERRORCHECK, .timed = 1}, MUTEX, 1);
	mutex((lock){.name = "robust-inconsistent", .init = 1, .robust = 2}, MUTEX, 1);
	mutex((lock){.name = "pi", .init = 1, .protocol = PTHREAD_PRIO_INHERIT}, PI, 1);
	mutex((lock){.name = "pi-shared", .init = 1, .protocol = PTHREAD_PRIO_INHERIT, .shared = 1}, PI, 1);
	mutex((lock){.name = "pi-timed", .init = 1, .protocol = PTHREAD_PRIO_INHERIT, .timed = 1}, PI, 1);
#ifdef __GLIBC__
	mutex((lock){.name = "adaptive", .init = 1, .type = PTHREAD_MUTEX_ADAPTIVE_NP}, MUTEX, 1);
	if (fifos) mutex((lock){.name = "protect", .init = 1, .protocol = PTHREAD_PRIO_PROTECT, .fifo = 1}, MUTEX, 1);
#endif
	rwlocks(0, 0);
	rwlocks(1, 1);
	rwlocks(2, 0);
	pthread_t t = start(joined, 0);
	start(joins, &t);
	while (!__atomic_load_n(&joined_tid, __ATOMIC_SEQ_CST)) usleep(1000);
	sleeps(&joiner_tid);
	printf("join %d %d %d 0\n", joiner_tid, JOIN, joined_tid);
	joiner_tid = joined_tid = 0;
	pthread_t u = start(joined, 0);
	start(joins_timed, &u);
	while (!__atomic_load_n(&joined_tid, __ATOMIC_SEQ_CST)) usleep(1000);
	sleeps(&joiner_tid);
	printf("join-timed %d %d %d 0\n", joiner_tid, JOIN, joined_tid);
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, 0, 2);
	printf("condvar %d 0 0 0\n", other(waits_cond, 0));
	printf("semaphore %d 0 0 0\n", other(waits_sem, 0));
	printf("barrier %d 0 0 0\n", other(waits_barrier, 0));
	flockfile(stdin);
	printf("stdio %d 0 0 0\n", other(waits_stdio, 0));
	pthread_mutex_t *m = calloc(1, sizeof *m);
	int tid = other(relocks, m);
	printf("relocked %d %d %d %p\n", tid, NORMAL, GLIBC ? tid : 0, (void *)m);
	printf("ready\n");
	forever(0);
}
