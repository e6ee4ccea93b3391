package unwind

// frameWalk is a way from a function's entry: offsets are from the stack pointer
// there, at which the return address lies.
type frameWalk struct {
	at     uint64 // link-time
	off    int64  // of the stack pointer
	saved  int64  // where the frame pointer was pushed, 0: nowhere
	framed bool   // the frame pointer points at where it was pushed, right below the return address
}

// recordOff is where the pair {frame pointer, return address} lies.
const recordOff = -8

// frameAt says how far above the stack pointer the frame pointer is at addr, if code
// that is entered at entry comes there with a frame of its own: the pair at the
// frame pointer is then what the call to entry left. Remembered.
func (t *Table) frameAt(entry, addr uint64) (above uint64, ok bool) {
	got, known := t.frames.get(addr)
	if !known || got.entry != entry {
		v := codeView{t: t}
		got = frameResult{entry: entry}
		got.above, got.ok = frameOf(&v, entry, addr)
		if v.err == nil {
			t.frames.put(addr, got)
		}
	}
	return got.above, got.ok
}

type frameResult struct {
	entry, above uint64
	ok           bool
}

func frameOf(v *codeView, entry, addr uint64) (above uint64, ok bool) {
	type place struct {
		at     uint64
		framed bool
	}
	seen := make(map[place]bool)
	walks := []frameWalk{{at: entry}}
	for n, steps := 0, 0; n < len(walks); n++ {
		for w := walks[n]; !seen[place{w.at, w.framed}] && steps < maxSteps; steps++ {
			if w.at == addr && w.framed {
				return uint64(recordOff - w.off), true
			}
			seen[place{w.at, w.framed}] = true
			in, ok := v.decode(w.at)
			if !ok {
				break
			}
			if in.kind == insBranch && len(walks) < maxPaths {
				other := w
				other.at = in.target(w.at)
				walks = append(walks, other)
			}
			if !w.step(in) {
				break
			}
		}
	}
	return 0, false
}

// step goes on behind an instruction; false: the way ends.
func (w *frameWalk) step(in instruction) bool {
	from := w.at
	w.at += uint64(in.next)
	switch in.kind {
	case insRet, insEnd:
		return false
	case insJump:
		w.at = in.target(from)
	case insPush:
		w.off -= 8
		if in.reg == machineFP {
			w.saved = w.off
		}
	case insPop:
		w.off += 8
		if in.reg == machineFP {
			w.saved, w.framed = 0, false
		}
		return in.reg != machineSP
	case insMoveSP:
		w.off += in.value
	case insSetFP:
		w.framed = w.off == recordOff && w.saved == recordOff
	case insSetSP:
		w.off = recordOff + in.value
		return w.framed
	case insLeave:
		was := w.framed
		w.off, w.saved, w.framed = recordOff+8, 0, false
		return was
	}
	return true
}
