//go:build !unix

package workqueue

import "testing"

// mapped is plain memory where there is no mmap.
func mapped(t testing.TB, size int) []byte { return make([]byte, size) }
