// Sockets of unix, TCP and UDP, and a network of the case's own.

struct family { const char *name; int family, type; };

static const struct family families[] = {
	{ "unix", AF_UNIX, SOCK_STREAM }, { "seqpacket", AF_UNIX, SOCK_SEQPACKET }, { "dgram", AF_UNIX, SOCK_DGRAM },
	{ "tcp4", AF_INET, SOCK_STREAM }, { "tcp6", AF_INET6, SOCK_STREAM }, { "udp4", AF_INET, SOCK_DGRAM },
};

static const struct family *family_of(const char *name)
{
	for (unsigned i = 0; i < sizeof families / sizeof families[0]; i++)
		if (!strcmp(families[i].name, name))
			return &families[i];
	die(name);
	return NULL;
}

// bound is a new socket with an address that the others know by its name.
static int bound(const char *name, const struct family *f)
{
	struct address *at = &common->address[atomic_fetch_add(&common->addresses, 1)];
	struct sockaddr_un *u = (void *)&at->a;
	struct sockaddr_in6 *in6 = (void *)&at->a;
	struct sockaddr_in *in = (void *)&at->a;
	int fd = socket(f->family, f->type, 0);

	strncpy(at->name, name, sizeof at->name - 1);
	at->type = f->type;
	at->a.ss_family = f->family;
	if (f->family == AF_UNIX) {
		snprintf(u->sun_path, sizeof u->sun_path, "%s/%s", dir, name);
		at->len = sizeof *u;
	} else if (f->family == AF_INET) {
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		at->len = sizeof *in;
	} else {
		in6->sin6_addr = in6addr_loopback;
		at->len = sizeof *in6;
	}
	if (fd < 0 || bind(fd, (void *)&at->a, at->len))
		die("bind");
	if (f->family != AF_UNIX && getsockname(fd, (void *)&at->a, &at->len))
		die("getsockname");
	return fd;
}

static struct address *address(const char *name)
{
	for (int i = 0; i < common->addresses; i++)
		if (!strcmp(common->address[i].name, name))
			return &common->address[i];
	die(name);
	return NULL;
}

static int connected(const char *to)
{
	struct address *at = address(to);
	int fd = socket(at->a.ss_family, at->type, 0);

	if (fd < 0 || connect(fd, (void *)&at->a, at->len))
		die("connect");
	return fd;
}

static struct sockaddr_in outside(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	if (inet_pton(AF_INET, host, &a.sin_addr) != 1)
		die(host);
	return a;
}

// network is one of the case's own: its lo leads to the addresses 192.0.2.0/24, and nobody there answers.
static void network(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	struct rtentry route = { .rt_flags = RTF_UP, .rt_dev = "lo" };
	struct sockaddr_in dst = outside("192.0.2.0", "0"), mask = outside("255.255.255.0", "0");
	int fd;

	if (unshare(CLONE_NEWNET) || (fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		die("network namespace");
	memcpy(&route.rt_dst, &dst, sizeof dst);
	memcpy(&route.rt_genmask, &mask, sizeof mask);
	if (ioctl(fd, SIOCADDRT, &route))
		die("route");
	close(fd);
}

// established is a connection to an address outside, as if made: TCP's repair mode sends nothing.
static int established(const char *host, const char *port)
{
	struct sockaddr_in to = outside(host, port), from = outside("127.0.0.1", "0");
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, off = -1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof on) || bind(fd, (void *)&from, sizeof from) ||
	    connect(fd, (void *)&to, sizeof to) || setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof off))
		die("repair");
	return fd;
}

static void pairs(struct step *s)
{
	int fd[2];

	for (int i = 0; i < (s->n > 5 ? atoi(s->w[5]) : 1); i++) {
		if (socketpair(AF_UNIX, family_of(s->w[4])->type, 0, fd))
			die("socketpair");
		add(s->w[2], fd[0]);
		add(s->w[3], fd[1]);
	}
}

// many are connections to one address, each accepted, all between two names: "a many c s l 20"
static void many(struct step *s)
{
	for (int i = 0; i < atoi(s->w[5]); i++) {
		add(s->w[2], connected(s->w[4]));
		add(s->w[3], accept(file(s->w[4]), NULL, NULL));
	}
}

static void listens(struct step *s)
{
	int fd = bound(s->w[2], family_of(s->w[3]));

	if (listen(fd, s->n > 4 ? atoi(s->w[4]) : 64))
		die("listen");
	add(s->w[2], fd);
}

// reach connects where that may wait for ever.
static void reach(struct step *s)
{
	struct sockaddr_in a;

	if (s->n > 3) {
		a = outside(s->w[2], s->w[3]);
		connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&a, sizeof a);
		return;
	}
	connected(s->w[2]);
}

// overfill sends to a datagram socket until there is no room.
static void overfill(const char *to)
{
	struct address *at = address(to);
	int fd = socket(at->a.ss_family, at->type, 0);

	while (sendto(fd, "hello", 5, 0, (void *)&at->a, at->len) > 0)
		;
	die("sendto");
}

static int verb_of_sockets(struct step *s)
{
	const char *verb = s->w[1];
	struct address *at;
	char some[16];

	if (!strcmp(verb, "netns"))
		network();
	else if (!strcmp(verb, "pair")) // "all pair x y unix [COUNT]"
		pairs(s);
	else if (!strcmp(verb, "many"))
		many(s);
	else if (!strcmp(verb, "listen")) // "b listen l tcp4 [BACKLOG]"
		listens(s);
	else if (!strcmp(verb, "bind")) // a datagram socket
		add(s->w[2], bound(s->w[2], family_of(s->w[3])));
	else if (!strcmp(verb, "connect")) // "a connect c l"
		add(s->w[2], connected(s->w[3]));
	else if (!strcmp(verb, "reconnect")) { // of a bound datagram socket: "a reconnect x y"
		at = address(s->w[3]);
		if (connect(file(s->w[2]), (void *)&at->a, at->len))
			die("connect");
	} else if (!strcmp(verb, "reach")) // "a reach l" or "a reach 192.0.2.7 80"
		reach(s);
	else if (!strcmp(verb, "overfill")) // "a overfill x"
		overfill(s->w[2]);
	else if (!strcmp(verb, "established")) // "a established c 192.0.2.7 5432"
		add(s->w[2], established(s->w[3], s->w[4]));
	else if (!strcmp(verb, "accept")) // "b accept s l"
		add(s->w[2], accept(file(s->w[3]), NULL, NULL));
	else if (!strcmp(verb, "await")) // a connection that nobody makes
		accept(file(s->w[2]), NULL, NULL);
	else if (!strcmp(verb, "recv"))
		recv(file(s->w[2]), some, sizeof some, 0);
	else if (!strcmp(verb, "shut"))
		shutdown(file(s->w[2]), SHUT_WR);
	else
		return 0;
	return 1;
}
