// Package ends looks, right after the release, for what threads wait for through descriptors:
// who has the other ends of their files, who has locks on these, which file systems and block
// devices they are on, and which requests FUSE servers have not answered.
//
//	Wanted   the bytes of a capture ─► Wants: the objects and threads to look for
//	Look     Wants ─► capture.Ends: one BPF pass over all open files of the machine (internal/bpf),
//	         beside it what /proc and /sys say
//
// All of it together ends within Budget, whatever hangs. What was not read is not waited for,
// and is said in the flags of kcdata.LinuxFilesTaken. The machine runs meanwhile: whether a
// thread still waits for the same is found out at the same time, and collation drops what
// belongs to one that does not.
//
// The bytes are those of our own engines, and are trusted no more than those of a file: lengths
// come from the items, and what is short, or there twice, is passed over.
package ends
