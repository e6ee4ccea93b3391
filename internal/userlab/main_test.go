//go:build linux

package userlab

import (
	"os"
	"testing"

	"stackshot/internal/testtask"
)

func TestMain(m *testing.M) {
	testtask.MaybeRun()
	os.Exit(m.Run())
}
