// One recursion over two object files, each function calling the other.
#define KEEP __attribute__((noinline, noclone, noipa))

extern volatile int kperf_after; // written behind every call, so that none is a tail call

void recurse_a(int depth, void (*leaf)(void));
void recurse_b(int depth, void (*leaf)(void));
