#include "kperf.h"

KEEP void recurse_b(int depth, void (*leaf)(void))
{
	volatile char local[40]; // so that the two frames differ in size

	local[depth % 40] = 1;
	if (depth > 1)
		recurse_a(depth - 1, leaf);
	else
		leaf();
	kperf_after += local[depth % 40];
}
