// A FUSE server that stops to answer where a case wants it, and mounts.

struct fuse_out { struct fuse_out_header h; char body[256]; };

static const struct { const char *name; unsigned op; } stalls[] = {
	{ "read", FUSE_READ }, { "lookup", FUSE_LOOKUP }, { "open", FUSE_OPEN }, { "stat", FUSE_GETATTR }, { "lock", FUSE_SETLKW }, { "fsync", FUSE_FSYNC }, { "never", 0 },
};

static unsigned stall_of(const char *name)
{
	for (unsigned i = 0; i < sizeof stalls / sizeof stalls[0]; i++)
		if (!strcmp(stalls[i].name, name))
			return stalls[i].op;
	die(name);
	return 0;
}

static struct fuse_attr attr_of(uint64_t node)
{
	struct fuse_attr a = { .ino = node, .nlink = 1, .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0666, .size = node == 1 ? 0 : 1 << 20 };

	return a;
}

// answered fills in the body of an answer, and gives its length. Attributes are kept for no
// time, so each stat is a request.
static size_t answered(struct fuse_in_header *in, void *body)
{
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_readahead = 0, .max_background = 64, .congestion_threshold = 48,
				      .max_write = 65536, .time_gran = 1, .flags = FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS };
	struct fuse_entry_out entry = { .nodeid = 2, .entry_valid = 1000, .attr = attr_of(2) };
	struct fuse_attr_out attr = { .attr = attr_of(in->nodeid) };

	switch (in->opcode) {
	case FUSE_INIT:
		memcpy(body, &init, sizeof init);
		return sizeof init;
	case FUSE_LOOKUP:
		memcpy(body, &entry, sizeof entry);
		return sizeof entry;
	case FUSE_GETATTR:
		memcpy(body, &attr, sizeof attr);
		return sizeof attr;
	case FUSE_OPEN:
		return sizeof(struct fuse_open_out); // zeros
	}
	return 0;
}

// serve answers until a request comes that is to stall, and gives up then.
static void serve(int fd, unsigned stall)
{
	static char request[1 << 18];
	struct fuse_in_header *in = (void *)request;

	for (;;) {
		struct fuse_out out = { 0 };

		if (read(fd, request, sizeof request) < (ssize_t)sizeof *in) {
			if (errno == ENOENT || errno == EINTR || errno == EAGAIN)
				continue;
			die("read of /dev/fuse");
		}
		if (in->opcode == stall)
			return;
		if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET || in->opcode == FUSE_INTERRUPT)
			continue;
		out.h.unique = in->unique;
		out.h.len = sizeof out.h + answered(in, out.body);
		write(fd, &out, out.h.len);
	}
}

// fuse mounts at DIR/name; its files are all one, of a megabyte.
static void fuse(const char *name)
{
	int fd = open("/dev/fuse", O_RDWR);
	char options[128];

	if (fd < 0 || mkdir(path(name), 0755))
		die("/dev/fuse");
	snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd);
	if (mount("ends", path(name), "fuse.ends", MS_NODEV | MS_NOSUID, options))
		die("mount");
	add(name, fd);
}

static void bind_mount(const char *from, const char *to)
{
	char source[512];

	snprintf(source, sizeof source, "%s", path(from));
	if (mkdir(path(to), 0755) || mount(source, path(to), NULL, MS_BIND, NULL))
		die("bind mount");
}

static void mount_namespace(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		die("mount namespace");
}

static int verb_of_mounts(struct step *s)
{
	const char *verb = s->w[1];
	struct stat st;

	if (!strcmp(verb, "fuse"))
		fuse(s->w[2]);
	else if (!strcmp(verb, "bind-mount"))
		bind_mount(s->w[2], s->w[3]);
	else if (!strcmp(verb, "mntns"))
		mount_namespace();
	else if (!strcmp(verb, "stat")) // "a stat m/x": path, and what is open is not asked
		stat(path(s->w[2]), &st);
	else if (!strcmp(verb, "look")) // the same, where a lock of the directory is waited for
		stat(path(s->w[2]), &st);
	else if (!strcmp(verb, "mkdir"))
		mkdir(path(s->w[2]), 0755);
	else
		return 0;
	return 1;
}
