//go:build !linux

package image

import (
	"errors"

	"stackshot/kcdata"
)

// VDSO fails: only Linux has one.
func VDSO(*kcdata.Mapping) ([]byte, error) { return nil, errors.ErrUnsupported }
