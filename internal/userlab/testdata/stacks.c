// Stacks that are not ordinary memory.
//   stacks paged FILE   a thread asleep on a stack that is FILE, mapped shared;
//                       its pages are written back and given up. Says the
//                       stack's first and last address
//   stacks remap        a thread asleep on a stack that is unmapped and mapped
//                       anew all the time. Says the stack's addresses
//   stacks vvar         a thread asleep with its stack pointer in the kernel's
//                       own pages beside the vDSO. Says sp
//   stacks at FILE      the same in a mapping of FILE. Says sp
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#define KEEP __attribute__((noinline, noclone, noipa))
#define SIZE (1 << 18)

static volatile int after;
static volatile unsigned long stand_at; // the stack pointer of stand
static int empty[2];

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static void say(unsigned long a, unsigned long b)
{
	printf("ready %#lx %#lx\n", a, b);
	fflush(stdout);
}

KEEP void paged_leaf(void)
{
	char c;

	read(empty[0], &c, 1);
	after++;
}

KEEP void paged_deep(int depth)
{
	volatile char room[1000];

	room[depth] = 1;
	if (depth > 0)
		paged_deep(depth - 1);
	else
		paged_leaf();
	after += room[depth];
}

static void *paged_thread(void *arg)
{
	paged_deep(20);
	after++;
	return arg;
}

static int paged(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0600);
	pthread_attr_t a;
	pthread_t t;
	struct timespec ms = { 0, 1000000 };
	char *m;

	if (fd < 0 || ftruncate(fd, SIZE))
		return fail(file);
	m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return fail("mmap");
	pthread_attr_init(&a);
	if (pthread_attr_setstack(&a, m, SIZE) || pthread_create(&t, &a, paged_thread, NULL))
		return fail("pthread_create");
	say((unsigned long)m, (unsigned long)m + SIZE);
	for (;;) { // until the test sees them gone, and after
		msync(m, SIZE, MS_SYNC);
		if (madvise(m, SIZE, MADV_PAGEOUT))
			return fail("MADV_PAGEOUT");
		nanosleep(&ms, NULL);
		if (ms.tv_nsec < 500000000)
			ms.tv_nsec *= 2;
	}
}

// stand sleeps for ever with its stack pointer at stand_at, and touches nothing
// there.
static void *stand(void *arg)
{
#ifdef __x86_64__
	__asm__ volatile("mov %0, %%rsp\n\tmov %0, %%rbp\n1:\tmov $34, %%eax\n\tsyscall\n\tjmp 1b"
			 : : "r"(stand_at) : "rax", "rcx", "r11", "memory");
#else
	__asm__ volatile("mov sp, %0\n\tmov x29, %0\n1:\tmov x0, #0\n\tmov x1, #0\n\tmov x2, #0\n\tmov x3, #0\n"
			 "\tmov x8, #73\n\tsvc #0\n\tb 1b" : : "r"(stand_at) : "x0", "x1", "x2", "x3", "x8", "memory");
#endif
	return arg;
}

static int stand_in(char *m, size_t at)
{
	pthread_t t;

	stand_at = (unsigned long)m + at;
	return pthread_create(&t, NULL, stand, NULL) ? fail("pthread_create") : 0;
}

static int remap(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *m = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (m == MAP_FAILED || stand_in(m, SIZE / 2))
		return fail("mmap");
	say((unsigned long)m, (unsigned long)m + SIZE);
	for (;;) {
		unsigned long *frame = (unsigned long *)(m + SIZE / 2);

		frame[0] = 0; // the outermost frame
		frame[1] = (unsigned long)paged_leaf + 4; // as if after a call
		if (munmap(m, SIZE))
			return fail("munmap");
		if (mmap(m, SIZE, PROT_READ | PROT_WRITE, flags | MAP_FIXED, -1, 0) != m)
			return fail("mmap");
	}
}

static char *find_vvar(void)
{
	unsigned long from = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "[vvar]"))
			from = strtoul(line, NULL, 16);
	if (f)
		fclose(f);
	return (char *)from;
}

static int at(const char *file)
{
	char *m = find_vvar();

	if (file) {
		int fd = open(file, O_RDONLY);

		m = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	}
	if (!m || m == MAP_FAILED)
		return fail(file ? file : "[vvar]");
	if (stand_in(m, 256))
		return 1;
	say(stand_at, stand_at);
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	if (pipe(empty) || argc < 2)
		return 1;
	if (!strcmp(argv[1], "paged"))
		return paged(argv[2]);
	if (!strcmp(argv[1], "remap"))
		return remap();
	return at(argc > 2 ? argv[2] : NULL);
}
