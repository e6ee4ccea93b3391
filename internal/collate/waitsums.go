package collate

import "stackshot/kcdata"

// sum adds a thread's wait to the sums.
func (w *waits) sum(r *kcdata.LinuxWait) {
	s := &w.taken
	s.Threads++
	count(&s.Fields, r.Flags&(kcdata.WaitField|kcdata.WaitPI) != 0)
	count(&s.Scanned, r.Flags&kcdata.WaitScanned != 0)
	count(&s.Scans, r.Flags&kcdata.WaitScan != 0)
	if r.Flags&kcdata.WaitScanned != 0 {
		count(&s.NoPath, r.Scan == kcdata.ScanNoPath)
		count(&s.Unsound, r.Scan >= kcdata.ScanNoRing)
	}
}

func (w *waits) sumFutex(f *kcdata.LinuxFutex) {
	s := &w.taken
	s.Futexes++
	count(&s.Absent, f.Flags&kcdata.FutexAbsent != 0)
	count(&s.Refused, f.Flags&kcdata.FutexRefused != 0)
	count(&s.Owned, f.Flags&kcdata.FutexOwned != 0)
	count(&s.Unsure, f.Flags&(kcdata.FutexAmbiguous|kcdata.FutexOwnerUnsure) != 0)
}

func count(n *uint32, yes bool) {
	if yes {
		*n++
	}
}
