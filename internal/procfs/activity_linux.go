package procfs

import "errors"

const maxInterrupts = 64 << 20 // size limit, bytes: a line per interrupt, a column per CPU

// Activity reads /proc/interrupts and /proc/stat: one Activity per online CPU.
func (f FS) Activity() (map[int]Activity, error) {
	files := []File{{Name: "interrupts", Max: maxInterrupts}, {Name: "stat", Max: maxStat}}
	f.Read("", files)
	if err := errors.Join(files[0].Err, files[1].Err); err != nil {
		return nil, err
	}
	taken, err := ParseInterrupts(files[0].Data)
	if err != nil {
		return nil, err
	}
	all, err := ParseCPUTicks(files[1].Data)
	if err != nil {
		return nil, err
	}
	for cpu, n := range taken {
		a := all[cpu]
		a.Interrupts = n
		all[cpu] = a
	}
	return all, nil
}
