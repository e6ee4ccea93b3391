//go:build !unix

package testheap

import "testing"

// Mapped is plain memory where there is no mmap.
func Mapped(tb testing.TB, size int) []byte { return make([]byte, size) }
