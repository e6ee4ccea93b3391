// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// The trap's half of the stop word (internal/bpf/stop_word.h, stop.h) as a program of its own,
// so that a test can run its steps in any order. Each request is one step of one
// worker; each step is one swap of the word, so between them anything may happen.
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>

typedef uint32_t u32;
typedef uint64_t u64;
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define peek(x) (*(volatile __typeof__(x) *)&(x))
#define observe(p) (*(p))
#define hide(x) ((void)(x))

static bool gives_up; // its deadline passes before it has got a swap
static u64 bpf_ktime_get_ns(void) { return 0; }
#define turns(n) for (u32 turn_ = 0; turn_ < 1; turn_++)
#define turns_unless(n, over) for (u32 turn_ = 0; turn_ < 1 && !gives_up && !(over); turn_++)

#include STOP_WORD_H
struct trap_worker { u64 pause_by; };
#include STOP_H

struct request { u64 word, want; u32 op, arg, gives_up, pad; };
struct answer { u64 word, said; };
enum { ARRIVE, EXPIRE, HOLD, FINISH, RELEASE, ALL_HELD, NO_SPACE };

int main(void)
{
	struct request r;
	while (fread(&r, sizeof(r), 1, stdin) == 1) {
		struct stop s = { r.word, r.want };
		struct answer a = { 0, 0 };
		gives_up = r.gives_up;
		switch (r.op) {
		case ARRIVE: a.said = stop_arrive(&s, r.arg, 1); break;
		case EXPIRE: stop_expire(&s, 1); break;
		case HOLD: stop_hold(&s, r.arg, 1); break;
		case FINISH: stop_finish(&s, 1); break;
		case RELEASE: stop_release(&s, 1); break;
		case ALL_HELD: s.over = r.arg; a.said = all_held(&s); break;
		case NO_SPACE: stop_no_space(&s, 1); break;
		}
		a.word = s.word;
		if (fwrite(&a, sizeof(a), 1, stdout) != 1 || fflush(stdout))
			return 1;
	}
	return 0;
}
