// Three threads: one asleep in a catch handler, one asleep in a destructor that
// runs because an exception passes, one that throws and catches all the time.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, noipa))

static volatile int after;
static int empty[2];

KEEP void sleep_for_ever()
{
	char c;
	while (read(empty[0], &c, 1) != 1)
		after = after + 1;
}

KEEP void thrower(int depth)
{
	std::string local(depth + 20, 'x');
	if (depth == 0)
		throw std::runtime_error(local);
	thrower(depth - 1);
	after = after + local.size();
}

struct Sleeper {
	~Sleeper() noexcept(false)
	{
		sleep_for_ever();
		after = after + 1;
	}
};

KEEP void catches()
{
	try {
		thrower(5);
	} catch (const std::exception &e) {
		sleep_for_ever();
		after = after + e.what()[0];
	}
}

KEEP void unwinds()
{
	Sleeper s;
	thrower(5);
	after = after + 1;
}

namespace lab {
template <typename T> struct Outer {
	T fill;
	KEEP int rethrow(int n)
	{
		try {
			thrower(n);
		} catch (...) {
			after = after + fill;
		}
		return n;
	}
};
}

KEEP void throws_on()
{
	lab::Outer<int> o{1};
	for (;;)
		o.rethrow(5);
}

int main()
{
	if (pipe(empty))
		return 1;
	std::vector<std::thread> ts;
	ts.emplace_back(catches);
	ts.emplace_back([] { try { unwinds(); } catch (...) { after = 1; } });
	ts.emplace_back(throws_on);
	std::puts("ready");
	std::fflush(stdout);
	for (auto &t : ts)
		t.join();
}
