// Waits in mmap(2) with its mmap_lock held for writing, or touches a page.
//   mapper touch FILE   maps FILE and reads its first byte
//   mapper hold FILE    maps FILE over three pages it has, five calls deep, in
//                       its first thread; a second thread sleeps in read
//   mapper exec FILE    executes FILE, five calls deep
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, noipa))

static volatile int after; // work behind every call, so that none is a tail call
static int file;
static char *old;

KEEP void hold_lock(void)
{
	mmap(old, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
	after++;
}

static const char *image;

KEEP void exec_image(void)
{
	execl(image, "late", NULL);
	perror(image);
	after++;
}

KEEP void deeper(int depth, void (*leaf)(void))
{
	if (depth > 0)
		deeper(depth - 1, leaf);
	else
		leaf();
	after++;
}

KEEP void *hold_beside(void *arg)
{
	char c;
	int *p = arg;
	read(p[0], &c, 1);
	after++;
	return NULL;
}

int main(int argc, char **argv)
{
	int p[2];
	pthread_t t;

	if (!strcmp(argv[1], "exec")) {
		image = argv[2];
		puts("ready");
		fflush(stdout);
		deeper(3, exec_image);
		return after;
	}
	file = open(argv[2], O_RDONLY);
	if (file < 0 || pipe(p)) {
		perror(argv[2]);
		return 1;
	}
	if (!strcmp(argv[1], "touch")) {
		volatile char *m = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
		puts("ready");
		fflush(stdout);
		return m[0];
	}
	old = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&t, NULL, hold_beside, p);
	puts("ready");
	fflush(stdout);
	deeper(3, hold_lock);
	return after;
}
