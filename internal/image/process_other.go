//go:build !linux

package image

// Alive fails: captures are of Linux machines.
func (p Process) Alive() error { return errElsewhere }

func (p Process) started() int64 { return 0 }
