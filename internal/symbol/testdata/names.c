// Functions of every kind of symbol: local and global, aliases, one in assembly
// without a size, an indirect one.
#include <stdio.h>
#include <unistd.h>

static volatile int sink;

static __attribute__((noinline)) int leaf(int n) { return sink += n; }
static inline __attribute__((always_inline)) int inner(int n)
{
	return leaf(n * 3);
}
static inline __attribute__((always_inline)) int outer(int n)
{
	int r = 0;
	for (int i = 0; i < n; i++)
		r += inner(i);
	return r;
}
__attribute__((noinline)) int global_function(int n) { return outer(n) + leaf(7); }
int __under_alias(int n) __attribute__((alias("global_function")));

__asm__(".text\nasm_without_size:\n\tnop\n\tnop\n\tret\n"
	".globl asm_next\n.type asm_next, %function\nasm_next:\n\tnop\n\tret\n.size asm_next, .-asm_next\n");

static int (*pick(void))(int) { return leaf; }
int indirect(int) __attribute__((ifunc("pick")));

int main(void)
{
	global_function(3);
	write(1, "x", 1);
	for (;;)
		pause();
}
