package symbol

import "runtime"

// lockedThread runs f on a thread that ends with it.
func lockedThread(f func()) {
	runtime.LockOSThread()
	f()
}
