// SPDX-License-Identifier: GPL-2.0 OR Apache-2.0
//
// What tests ask of the programs of both engines; trap_knobs.h has the trap's own.
// Only the objects of package bpftest are compiled with STACKSHOT_TEST. In what ships
// each question below is a constant and each change is nothing, so the compiler
// leaves no trace of them; TestKnobsDoNotShip looks for one. Every name that only
// the tests' objects have begins with test_.
#ifndef STACKSHOT_KNOBS_H
#define STACKSHOT_KNOBS_H

// A panic records the mappings of every process, since no /proc will answer later.
#ifdef STACKSHOT_ALL_MAPS
enum { ALL_MAPS = 1 };
#else
enum { ALL_MAPS = 0 };
#endif

#ifdef STACKSHOT_TEST

// Set before the programs are loaded; constant after.
const volatile u32 test_all_maps;  // record the mappings of every process
const volatile u32 test_no_fields; // no task names the lock that it waits for
const volatile u32 test_stale_tid; // the trap records this thread as if it ran once more before the second pass

static __always_inline bool all_maps_asked(void) { return ALL_MAPS || test_all_maps; }
static __always_inline bool fields_asked(void) { return !test_no_fields; }
static __always_inline void make_stale(struct linux_thread *r)
{
	if (test_stale_tid && r->tid == test_stale_tid)
		r->nvcsw--;
}

#else

static __always_inline bool all_maps_asked(void) { return ALL_MAPS; }
static __always_inline bool fields_asked(void) { return 1; }
static __always_inline void make_stale(struct linux_thread *r) {}

#endif
#endif
