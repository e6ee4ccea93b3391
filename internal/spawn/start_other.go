//go:build linux && !amd64 && !arm64

package spawn

import (
	"context"
	"errors"
	"os"
	"time"
)

// Start fails: it knows amd64 and arm64.
func Start(context.Context, time.Duration, []string, ...*os.File) (*Child, error) {
	return nil, errors.ErrUnsupported
}
