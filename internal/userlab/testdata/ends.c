// Processes that wait for each other through open files. A case is a list of steps, one
// argument each:
//   ends DIR "all pipe p" "a read p.r" "b has p.w" "b nap"
// Steps of "all" are done before the roles are made, in this process. Each role is a process,
// and "a.x" is another thread of role a's. A process keeps the open files that its steps name,
// and no others. Steps are done in their order, each when the one before is done; a role's last
// one may last for ever, so it counts as done when it begins. When all are, it says who plays
// which role: ready a=1234 b=1235
#include "ends.h"
#include "ends_files.h"
#include "ends_sockets.h"
#include "ends_mounts.h"
#include "ends_healthy.h"

static struct step steps[STEPS];
static int step_count;
static struct { char name[24]; int fd; } files[FILES];
static int file_count;

static void die(const char *what)
{
	fprintf(stderr, "%s: ", what);
	perror("");
	_exit(1);
}

static void nap(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void nap_for_ever(void)
{
	for (;;)
		nap(1000000000);
}

static void add(const char *name, int fd)
{
	if (fd < 0)
		die(name);
	if (file_count == FILES)
		die("too many files");
	snprintf(files[file_count].name, sizeof files[0].name, "%s", name);
	files[file_count++].fd = fd;
}

static int all_files(const char *name, int *fds)
{
	int n = 0;

	for (int i = 0; i < file_count; i++)
		if (!strcmp(files[i].name, name))
			fds[n++] = files[i].fd;
	if (n == 0)
		die(name);
	return n;
}

static int file(const char *name)
{
	int fds[FILES];

	all_files(name, fds);
	return fds[0];
}

static const char *path(const char *name)
{
	static __thread char text[512];

	snprintf(text, sizeof text, "%s/%s", dir, name);
	return text;
}

// of_process is whether a role is a thread of a process's.
static int of_process(const char *role, const char *process)
{
	size_t n = strlen(process);

	return !strncmp(role, process, n) && (!role[n] || role[n] == '.');
}

// names is whether a step of this process, or of one that it will make, names a file.
static int names(const char *process, const char *name, int spawned)
{
	for (int i = 0; i < step_count; i++) {
		if (!of_process(steps[i].w[0], process))
			continue;
		for (int k = 2; k < steps[i].n; k++)
			if (!strcmp(steps[i].w[k], name))
				return 1;
		if (spawned && !strcmp(steps[i].w[1], "spawn") && names(steps[i].w[2], name, 1))
			return 1;
	}
	return 0;
}

static void keep(const char *process, int spawned)
{
	int n = 0;

	for (int i = 0; i < file_count; i++)
		if (names(process, files[i].name, spawned))
			files[n++] = files[i];
		else
			close(files[i].fd);
	file_count = n;
}

static void play(const char *role)
{
	for (int i = 0; i < common->roles; i++)
		if (!strcmp(common->role[i].name, role))
			atomic_store(&common->role[i].tid, syscall(SYS_gettid));
}

static void run_steps(const char *role);

static void *run_thread(void *role)
{
	play(role);
	run_steps(role);
	return NULL;
}

// run_process is a role's, with its threads.
static void run_process(const char *role)
{
	prctl(PR_SET_NAME, role);
	keep(role, 1);
	for (int i = 0; i < common->roles; i++) {
		pthread_t t;

		if (strcmp(common->role[i].name, role) && of_process(common->role[i].name, role) &&
		    pthread_create(&t, NULL, run_thread, common->role[i].name))
			die("pthread_create");
	}
	run_thread((void *)role);
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

static void spawn(const char *role)
{
	if (child() == 0)
		run_process(role);
}

static int spawned(const char *role)
{
	for (int i = 0; i < step_count; i++)
		if (!strcmp(steps[i].w[1], "spawn") && !strcmp(steps[i].w[2], role))
			return 1;
	return 0;
}

// caught is a handler that does nothing: a call that a signal ends is begun again by nobody.
static void caught(int sig) { }

// namespace: of pids, for those who are made from here on. This goes on as the child of the
// new namespace's first, which is like no other.
static void pid_namespace(void)
{
	if (unshare(CLONE_NEWPID))
		die("unshare");
	for (int i = 0; i < 2; i++)
		if (child() != 0) {
			waitpid(-1, NULL, 0);
			_exit(1);
		}
}

static int verb_of_processes(struct step *s)
{
	const char *verb = s->w[1];

	if (!strcmp(verb, "nap"))
		nap_for_ever();
	else if (!strcmp(verb, "has"))
		;
	else if (!strcmp(verb, "later")) // "a later MS": the step before, which lasts, has begun
		nap(atoi(s->w[2]));
	else if (!strcmp(verb, "busy"))
		for (;;)
			;
	else if (!strcmp(verb, "stop"))
		kill(getpid(), SIGSTOP);
	else if (!strcmp(verb, "catch"))
		signal(SIGUSR1, caught);
	else if (!strcmp(verb, "spawn")) {
		spawn(s->w[2]);
		keep(s->w[0], 0);
	} else if (!strcmp(verb, "wait"))
		waitpid(-1, NULL, 0);
	else if (!strcmp(verb, "exec")) // waits for the other threads of its process
		execl("/proc/self/exe", "ends", NULL);
	else if (!strcmp(verb, "lock"))
		pthread_mutex_lock(&common->lock[atoi(s->w[2])]);
	else if (!strcmp(verb, "pidns"))
		pid_namespace();
	else
		return 0;
	return 1;
}

static void do_step(struct step *s);

// serve_and_then: "server serve m read nap" answers until a read comes, and takes a nap then.
static void serve_and_then(struct step *s)
{
	struct step then = { .n = s->n - 3, .w = { s->w[0] } };

	serve(file(s->w[2]), stall_of(s->w[3]));
	for (int i = 1; i < then.n; i++)
		then.w[i] = s->w[i + 3];
	do_step(&then);
}

static void do_step(struct step *s)
{
	if (!strcmp(s->w[1], "serve"))
		serve_and_then(s);
	else if (!verb_of_processes(s) && !verb_of_files(s) && !verb_of_sockets(s) && !verb_of_mounts(s) && !verb_of_healthy(s)) {
		fprintf(stderr, "no such verb: %s\n", s->w[1]);
		_exit(1);
	}
}

static int last_of(const char *role)
{
	int last = -1;

	for (int i = 0; i < step_count; i++)
		if (!strcmp(steps[i].w[0], role))
			last = i;
	return last;
}

static void run_steps(const char *role)
{
	int last = last_of(role);

	for (int i = 0; i < step_count; i++) {
		if (strcmp(steps[i].w[0], role))
			continue;
		while (atomic_load(&common->step) < i)
			nap(1);
		if (i == last)
			atomic_store(&common->step, i + 1);
		do_step(&steps[i]);
		if (i != last)
			atomic_store(&common->step, i + 1);
	}
	fprintf(stderr, "%s went on\n", role); // the test sees that it does not wait
	nap_for_ever();
}

static void parse(char *text)
{
	struct step *s = &steps[step_count++];

	for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
		s->w[s->n++] = w;
	if (s->n < 2 || step_count == STEPS)
		die("step");
	for (int i = 0; i < common->roles; i++)
		if (!strcmp(common->role[i].name, s->w[0]))
			return;
	if (strcmp(s->w[0], "all"))
		strncpy(common->role[common->roles++].name, s->w[0], sizeof common->role[0].name - 1);
}

static void share(void)
{
	pthread_mutexattr_t a;

	common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (common == MAP_FAILED)
		die("mmap");
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < 4; i++)
		pthread_mutex_init(&common->lock[i], &a);
}

static void ready(void)
{
	while (atomic_load(&common->step) < step_count)
		nap(1);
	printf("ready");
	for (int i = 0; i < common->roles; i++) {
		while (!atomic_load(&common->role[i].tid))
			nap(1);
		printf(" %s=%d", common->role[i].name, common->role[i].tid);
	}
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	dir = argv[1];
	share();
	for (int i = 2; i < argc; i++)
		parse(argv[i]);
	umask(0);
	for (int i = 0; i < step_count; i++)
		if (!strcmp(steps[i].w[0], "all")) {
			do_step(&steps[i]);
			atomic_store(&common->step, i + 1);
		}
	for (int i = 0; i < common->roles; i++)
		if (!strchr(common->role[i].name, '.') && !spawned(common->role[i].name))
			spawn(common->role[i].name);
	keep("", 0);
	ready();
	nap_for_ever();
	return 0;
}
