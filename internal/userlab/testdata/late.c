// A program whose data begin far behind its head, so that the kernel is half
// through exec when it needs them: it clears the rest of their last page.
#include <unistd.h>

const char fill[1 << 20] = { 1 };
volatile int data[3] = { 1, 2, 3 };
volatile int bss[100];

int main(void)
{
	write(1, fill, data[0] + bss[0]);
	return 0;
}
