// A 32-bit program without a library, because gcc -m32 alone has none. Asleep in
// pause(2), three calls deep.
#define KEEP __attribute__((noinline, noclone, noipa))

static volatile int after;

static int call(int nr, int a, int b, int c)
{
	int r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}

KEEP void inner32(void)
{
	for (;;) {
		call(29, 0, 0, 0);
		after++;
	}
}

KEEP void outer32(void)
{
	inner32();
	after++;
}

void _start(void)
{
	call(4, 1, (int)"ready\n", 6);
	outer32();
	call(1, after, 0, 0);
}
