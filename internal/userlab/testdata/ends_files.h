// Pipes, FIFOs, files and their locks, terminals, and calls that wait for several at once.

static void pipes(const char *name)
{
	char end[40];
	int fd[2];

	if (pipe(fd))
		die("pipe");
	snprintf(end, sizeof end, "%s.r", name);
	add(end, fd[0]);
	snprintf(end, sizeof end, "%s.w", name);
	add(end, fd[1]);
}

static void terminals(const char *name)
{
	char end[40], slave[64];
	struct termios t;
	int master = posix_openpt(O_RDWR | O_NOCTTY), fd;

	if (master < 0 || grantpt(master) || unlockpt(master) || ptsname_r(master, slave, sizeof slave))
		die("pty");
	fd = open(slave, O_RDWR | O_NOCTTY);
	if (fd < 0 || tcgetattr(fd, &t))
		die(slave);
	cfmakeraw(&t);
	if (tcsetattr(fd, TCSANOW, &t))
		die("tcsetattr");
	snprintf(end, sizeof end, "%s.m", name);
	add(end, master);
	snprintf(end, sizeof end, "%s.s", name);
	add(end, fd);
}

// fill writes until there is no room; other open descriptions stay as they are.
static void fill(int fd)
{
	static char some[4096];
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	for (size_t n = sizeof some; n > 0; n /= 2)
		while (write(fd, some, n) > 0)
			;
	if (errno != EAGAIN)
		die("fill");
	fcntl(fd, F_SETFL, flags);
}

static void record_lock(struct step *s, int how)
{
	struct flock l = { .l_type = F_WRLCK, .l_start = atoi(s->w[3]), .l_len = 1 };

	if (fcntl(file(s->w[2]), how, &l))
		die("fcntl lock");
}

// set waits for all the files that a step names, from its word 4 on: "a poll MS EXTRA x y".
static void set(struct step *s)
{
	int ep = epoll_create1(0), n = 0, wait_ms = atoi(s->w[2]), top = 0, fds[FILES];
	struct timeval tv = { wait_ms / 1000, wait_ms % 1000 * 1000 };
	struct pollfd p[FILES];
	struct epoll_event e;
	fd_set in;

	FD_ZERO(&in);
	for (int i = 0; i < atoi(s->w[3]); i++)
		fds[n++] = eventfd(0, 0);
	for (int i = 4; i < s->n; i++)
		n += all_files(s->w[i], fds + n);
	for (int i = 0; i < n; i++) {
		p[i] = (struct pollfd){ fds[i], POLLIN, 0 };
		FD_SET(fds[i], &in);
		top = fds[i] > top ? fds[i] : top;
		e = (struct epoll_event){ EPOLLIN, { .fd = fds[i] } };
		if (!strcmp(s->w[1], "epoll") && epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e))
			die("epoll_ctl");
	}
	if (!strcmp(s->w[1], "epoll"))
		epoll_wait(ep, &e, 1, wait_ms);
	close(ep);
	if (!strcmp(s->w[1], "poll"))
		poll(p, n, wait_ms);
	if (!strcmp(s->w[1], "select"))
		select(top + 1, &in, NULL, NULL, wait_ms < 0 ? NULL : &tv);
}

// page is one of memory that a userfaultfd is to serve.
static void *page;

static void userfault(const char *name)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .range.len = getpagesize(), .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, 0);

	page = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (unsigned long)page;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || page == MAP_FAILED || ioctl(fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
	add(name, fd);
}

// again opens a file once more: an open file description of its own.
static int again(const char *name)
{
	char self[32];

	snprintf(self, sizeof self, "/proc/self/fd/%d", file(name));
	return open(self, O_RDWR);
}

static void forget(const char *name)
{
	int fds[FILES], n = all_files(name, fds);

	for (int i = 0; i < n; i++)
		close(fds[i]);
}

// make opens new files: "a pipe p" gives p.r and p.w.
static int verb_that_makes(struct step *s)
{
	const char *verb = s->w[1], *name = s->w[2];

	if (!strcmp(verb, "pipe"))
		pipes(name);
	else if (!strcmp(verb, "pty"))
		terminals(name);
	else if (!strcmp(verb, "eventfd"))
		add(name, eventfd(0, 0));
	else if (!strcmp(verb, "timerfd"))
		add(name, timerfd_create(CLOCK_MONOTONIC, 0));
	else if (!strcmp(verb, "memfd"))
		add(name, memfd_create(name, 0));
	else if (!strcmp(verb, "uffd"))
		userfault(name);
	else if (!strcmp(verb, "fifo")) {
		if (mkfifo(path(name), 0600))
			die("mkfifo");
	} else if (!strcmp(verb, "file"))
		add(name, open(path(name), O_RDWR | O_CREAT, 0600));
	else if (!strcmp(verb, "open") || !strcmp(verb, "open-to-read")) // "a open-to-read f path"
		add(name, open(path(s->w[3]), O_RDONLY));
	else if (!strcmp(verb, "open-to-write"))
		add(name, open(path(s->w[3]), O_WRONLY));
	else if (!strcmp(verb, "open-both"))
		add(name, open(path(s->w[3]), O_RDWR));
	else if (!strcmp(verb, "again")) // "a again g f"
		add(name, again(s->w[3]));
	else
		return 0;
	return 1;
}

static int verb_of_files(struct step *s)
{
	static char some[1 << 16];
	const char *verb = s->w[1];

	if (verb_that_makes(s))
		return 1;
	if (!strcmp(verb, "read"))
		read(file(s->w[2]), some, sizeof some);
	else if (!strcmp(verb, "write"))
		write(file(s->w[2]), some, 8192);
	else if (!strcmp(verb, "put")) // a request of 5 bytes
		write(file(s->w[2]), "hello", 5);
	else if (!strcmp(verb, "take"))
		read(file(s->w[2]), some, 5);
	else if (!strcmp(verb, "fill"))
		fill(file(s->w[2]));
	else if (!strcmp(verb, "close"))
		forget(s->w[2]);
	else if (!strcmp(verb, "write-page")) // of a userfaultfd
		write(file(s->w[2]), page, 100);
	else if (!strcmp(verb, "touch-page"))
		*(volatile char *)page = 1;
	else if (!strcmp(verb, "flock"))
		flock(file(s->w[2]), LOCK_EX);
	else if (!strcmp(verb, "posix")) // "a posix f 7": one byte there
		record_lock(s, F_SETLKW);
	else if (!strcmp(verb, "ofd"))
		record_lock(s, F_OFD_SETLKW);
	else if (!strcmp(verb, "fsync"))
		fsync(file(s->w[2]));
	else if (!strcmp(verb, "poll") || !strcmp(verb, "select") || !strcmp(verb, "epoll"))
		set(s);
	else
		return 0;
	return 1;
}
