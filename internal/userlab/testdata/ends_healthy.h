// Processes that go on, or wait as they should.

static void pause_us(int us)
{
	struct timespec t = { 0, us * 1000 };

	nanosleep(&t, NULL);
}

// pump is the middle of a pipeline: "b pump p.r q.w". An input of "-" is a source, an output of
// "-" a sink, slower than the rest by turns.
static void pump(const char *in, const char *out)
{
	static char some[16384];

	for (unsigned turn = 0;; turn++) {
		ssize_t n = sizeof some >> turn % 8;

		if (strcmp(in, "-") && (n = read(file(in), some, sizeof some)) <= 0)
			die("pump: read");
		if (!strcmp(out, "-"))
			pause_us(turn % 64 ? 50 : 3000);
		else if (write(file(out), some, n) != n)
			die("pump: write");
	}
}

// ask sends requests one after the other: "c ask s US", with so long between them.
static void ask(const char *name, int us)
{
	char answer[8];

	for (;;) {
		if (write(file(name), "hello", 5) != 5 || read(file(name), answer, 5) != 5)
			die("ask");
		pause_us(us);
	}
}

// answer serves one connection at a time: "srv answer s".
static void answer(const char *name)
{
	char request[8];

	while (read(file(name), request, 5) == 5) {
		pause_us(20);
		if (write(file(name), request, 5) != 5)
			die("answer");
	}
	die("answer: read");
}

// worker takes connections of a listener and serves each to its end: "srv*4 worker l".
static void worker(const char *name)
{
	char request[8];

	for (;;) {
		int fd = accept(file(name), NULL, NULL);

		if (fd < 0)
			die("accept");
		while (read(fd, request, 5) == 5 && write(fd, request, 5) == 5)
			;
		close(fd);
	}
}

// call makes a connection for a few requests, and again after a while: "c call l".
static void call(const char *to)
{
	char some[8];

	for (;;) {
		int fd = connected(to);

		for (int i = 0; i < 20; i++) {
			if (write(fd, "hello", 5) != 5 || read(fd, some, 5) != 5)
				die("call");
			pause_us(200);
		}
		close(fd);
		pause_us(20000);
	}
}

// bus sends what one of its clients says to all others: "bus bus x".
static void bus(const char *name)
{
	struct pollfd p[FILES];
	int fds[FILES], n = all_files(name, fds);
	char some[64];

	for (;;) {
		for (int i = 0; i < n; i++)
			p[i] = (struct pollfd){ fds[i], POLLIN, 0 };
		poll(p, n, -1);
		for (int i = 0; i < n; i++)
			if (p[i].revents) {
				ssize_t got = read(fds[i], some, sizeof some);

				for (int k = 0; k < n; k++)
					if (k != i)
						send(fds[k], some, got, MSG_DONTWAIT);
			}
	}
}

// rider hears all that the bus says, and tells it something every now and then.
static void rider(const char *name, int us)
{
	struct pollfd p = { file(name), POLLIN, 0 };
	char some[4096];

	for (;;) {
		if (poll(&p, 1, us / 1000) > 0)
			read(p.fd, some, sizeof some);
		else
			send(p.fd, "hello", 5, MSG_DONTWAIT);
	}
}

// locked works under a lock of a file: "w locked f".
static void locked(const char *name)
{
	int fd = open(path(name), O_RDWR);

	for (;;) {
		flock(fd, LOCK_EX);
		pause_us(300);
		flock(fd, LOCK_UN);
		pause_us(1000);
	}
}

// bystander waits as it should, with 40 files open: by turns asleep, at its pipes, at a
// pipe from the one who made it, and at an epoll.
static void bystander(int i, int from)
{
	struct step waits = { .n = 5, .w = { "", i % 4 == 1 ? "poll" : "epoll", "-1", "0", "mine.r" } };
	char name[64];

	for (int k = 0; k < 8; k++)
		pipes("mine");
	for (int k = 0; k < 4; k++) {
		struct step pair = { .n = 5, .w = { "", "pair", "x", "y", "unix" } };

		pairs(&pair);
	}
	for (int k = 0; k < 15; k++) {
		snprintf(name, sizeof name, "by%d.%d", i, k % 2);
		add("file", open(path(name), O_RDWR | O_CREAT, 0600));
	}
	atomic_fetch_add(&common->met, 1);
	if (i % 4 == 2)
		read(from, name, 1);
	if (i % 2)
		set(&waits);
	nap_for_ever();
}

// crowd makes bystanders, and is done when all have come to their place.
static void crowd(int n)
{
	int from[2], *to = calloc(n, sizeof *to);

	for (int i = 0; i < n; i++) {
		if (pipe(from))
			die("pipe");
		if (child() == 0) {
			for (int k = 0; k < i; k++)
				close(to[k]);
			close(from[1]);
			prctl(PR_SET_NAME, i % 4 == 2 ? "reader" : "bystander");
			bystander(i, from[0]);
		}
		close(from[0]);
		to[i] = from[1];
	}
	while (atomic_load(&common->met) < n)
		pause_us(1000);
}

static int verb_of_healthy(struct step *s)
{
	const char *verb = s->w[1];

	if (!strcmp(verb, "pump"))
		pump(s->w[2], s->w[3]);
	else if (!strcmp(verb, "ask"))
		ask(s->w[2], atoi(s->w[3]));
	else if (!strcmp(verb, "answer"))
		answer(s->w[2]);
	else if (!strcmp(verb, "worker"))
		worker(s->w[2]);
	else if (!strcmp(verb, "call"))
		call(s->w[2]);
	else if (!strcmp(verb, "bus"))
		bus(s->w[2]);
	else if (!strcmp(verb, "rider"))
		rider(s->w[2], atoi(s->w[3]));
	else if (!strcmp(verb, "locked"))
		locked(s->w[2]);
	else if (!strcmp(verb, "crowd"))
		crowd(atoi(s->w[2]));
	else
		return 0;
	return 1;
}
