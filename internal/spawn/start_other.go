//go:build linux && !amd64 && !arm64

package spawn

import (
	"context"
	"errors"
	"os"
	"time"
)

// Limit and ErrHeld are as on the architectures that Start knows.
var (
	Limit   = time.Second
	ErrHeld = errors.New("a helper process was started and does not begin")
)

// Start fails: it knows amd64 and arm64.
func Start(context.Context, time.Duration, []string, ...*os.File) (*Child, error) {
	return nil, errors.ErrUnsupported
}
