// Package testfiles has a standing fixture for tests: real processes with known descriptors,
// and threads that wait at files of every kind, of which it is known who has the other end.
// It also reads what outside programs say of descriptors and sockets: lsfd (package
// util-linux-extra) and ss (iproute2).
//
// [Start] makes the files, and gives each to the process that is to have it: the waiter, and
// two holders. The processes are the test binary again, so they need no other program. A
// test binary that uses Start calls [MaybeRun] first in TestMain.
package testfiles
