// Package screen writes the first screen: what a person who knows Linux, and not this program,
// reads in the first thirty seconds after a machine hung. It is a pure function of a decoded
// snapshot and the verdict on it, at most as high and as wide as the terminal.
//
//	machine ─► STUCK ─► STOPPED ─► CPU ─► MEMORY ─► DISK ─► MANY ─► at rest ─► picture ─► next commands
//
// # Invariants
//
//	F1. What is said is in the snapshot: every pid and tid that a screen names is in the file,
//	    or is said not to be.
//	F2. A screen takes at most Options.Height rows of a terminal of Options.Width cells; only a
//	    command may be longer than a row. From 8 rows on, what found no room is counted on it.
//	F3. A machine on which nothing is wrong names no thread that sleeps, but those that wait for a busy disk.
//	F4. Every command that a screen prints runs as it stands, and is never cut.
//	F5. If something is missing from the picture, the first line after the machine's says so.
package screen
