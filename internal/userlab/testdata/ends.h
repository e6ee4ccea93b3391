// What the parts of ends.c share: the roles of a case, its steps, and the names of open files.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { ROLES = 96, STEPS = 512, WORDS = 20, FILES = 256, ADDRESSES = 48 };

// A step is "role verb argument...".
struct step {
	int n;
	char *w[WORDS];
};

struct role {
	char name[24];
	atomic_int tid;
};

struct address {
	char name[24];
	int type;
	socklen_t len;
	struct sockaddr_storage a;
};

// What all processes of a case share.
struct common {
	atomic_int step; // how many are done; each is done by one thread
	atomic_int roles, addresses, met;
	pthread_mutex_t lock[4];
	struct role role[ROLES];
	struct address address[ADDRESSES]; // written in a step, read in later ones
};

static struct common *common;
static const char *dir; // of the files of this case

static void die(const char *what);
static void nap_for_ever(void);
static pid_t child(void);
static void add(const char *name, int fd);
static int file(const char *name);                  // the first of this name
static int all_files(const char *name, int *fds);   // there may be several
static const char *path(const char *name);
