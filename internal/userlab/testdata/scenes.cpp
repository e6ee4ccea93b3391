// Statics of C++ functions, in a service that hangs or loads for long: scenes.cpp hang|rest
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

static bool hangs;
static std::mutex table;
static std::mutex m;
static std::condition_variable changed;
static int step;

static void go_to(int n)
{
	std::lock_guard<std::mutex> l(m);

	step = n;
	changed.notify_all();
}

static void await(int n)
{
	std::unique_lock<std::mutex> l(m);

	changed.wait(l, [n] { return step >= n; });
}

// The registry is made while its maker wants the table, whose owner wants the registry; or for long.
struct Registry {
	int entries = 0;

	Registry()
	{
		go_to(1);
		if (!hangs)
			sleep(1 << 30);
		await(2);
		std::lock_guard<std::mutex> l(table);
	}
};

__attribute__((noinline)) static Registry &registry()
{
	static Registry r;

	return r;
}

int main(int, char **argv)
{
	hangs = !strcmp(argv[1], "hang");
	prctl(PR_SET_NAME, "catalog");
	std::thread([] { registry(); }).detach();
	await(1);
	if (hangs)
		std::thread([] {
			std::lock_guard<std::mutex> l(table);
			go_to(2);
			registry().entries++;
		}).detach();
	for (int i = 0; i < 3; i++)
		std::thread([] { registry().entries++; }).detach();
	puts("ready");
	fflush(stdout);
	sleep(1 << 30);
}
