#include <map>
#include <string>
#include <vector>

namespace lab {
template <typename K, typename V> struct Table {
	std::map<K, V> m;
	__attribute__((noinline)) V &at(const K &k) { return m[k]; }
};
struct Op {
	__attribute__((noinline)) int operator()(int a) const { return a + 1; }
};
template <typename F> __attribute__((noinline)) int apply(F f, int n) { return f(n); }
}

int main(int argc, char **)
{
	lab::Table<std::string, std::vector<int>> t;
	t.at("x").push_back(lab::apply(lab::Op(), argc));
	return lab::apply([](int n) { return n * 2; }, argc) == 7;
}
