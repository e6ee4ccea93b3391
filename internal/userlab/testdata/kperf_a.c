#include "kperf.h"

KEEP void recurse_a(int depth, void (*leaf)(void))
{
	if (depth > 1)
		recurse_b(depth - 1, leaf);
	else
		leaf();
	kperf_after++;
}
