package bpf

// The objects are committed; regenerating them with clang-19 gives the same
// bytes (.ci/run checks). Needs packages clang-19, llvm-19 and libbpf-dev.
//
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type control -type cpu_slot -type census_entry -type second -type cpu_sample -target amd64,arm64 -go-package bpf object stackshot.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type stop -type trap_worker -type trap_part -type trap_piece -type trap_second -type trace_event -type trace_ring -target amd64,arm64 -go-package bpf trapObject trap.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type panic_run -type panic_ask -target amd64,arm64 -go-package bpf panicObject panic.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -target amd64,arm64 -go-package bpf probeObject probe.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type ask -target amd64,arm64 -go-package bpf mapObject directmap.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type ends_ask -type end_key -type end_wanted -type thread_key -type thread_asked -target amd64,arm64 -go-package bpf endsObject ends.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
//
// The objects of the tests, from the same sources (package bpftest).
//
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -target amd64,arm64 -go-package bpftest -output-dir bpftest Pull stackshot.bpf.c -- -O2 -mcpu=v3 -Wall -Werror -DSTACKSHOT_TEST
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -target amd64,arm64 -go-package bpftest -output-dir bpftest Trap trap.bpf.c -- -O2 -mcpu=v3 -Wall -Werror -DSTACKSHOT_TEST
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -target amd64,arm64 -go-package bpftest -output-dir bpftest Ends ends.bpf.c -- -O2 -mcpu=v3 -Wall -Werror -DSTACKSHOT_TEST
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -target amd64,arm64 -go-package bpftest -output-dir bpftest Maple mapletest.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type spin -target amd64,arm64 -go-package bpftest -output-dir bpftest Spin spintest.bpf.c -- -O2 -mcpu=v3 -Wall -Werror
