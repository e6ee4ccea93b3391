// Package testvm runs this project's tests on other kernels and other machines
// than the one they are built on: in guests under QEMU, by software emulation.
//
//	Kernels ──► Build ──► Image ──► Start ──► Result
//	 fetched     test      newc      QEMU,     verdict, exit code,
//	 by apt      binary    cpio      QMP       output, files, console
//
// A guest is one kernel, one initramfs and nothing else: no disk, no network.
// Its first process is cmd/vminit, which mounts what tests need, runs one
// program as root in a copy of this repository and powers off. It talks over
// two lines: the console carries the kernel's words and is kept as a log, the
// wire (package wire) carries framed output, files and the exit code.
//
// [Run] is for a test that runs inside a guest, [Start] for one that drives a
// guest from outside.
//
// What this package promises: a guest never outlives its time limit or the
// process that started it; every verdict names what was seen, not what was
// hoped; a second attempt is made only when the first said nothing about the
// test ([Result.Flaked]), and is reported.
package testvm
