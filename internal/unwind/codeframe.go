package unwind

// frameWalk is a way from a function's entry: offsets are from the stack pointer
// there, at which the return address lies.
type frameWalk struct {
	at     uint64 // link-time
	off    int64  // of the stack pointer
	saved  int64  // where the frame pointer was pushed, 0: nowhere
	framed bool   // the frame pointer points at where it was pushed, right below the return address
	loose  bool   // off is not known
}

// recordOff is where the pair {frame pointer, return address} lies.
const recordOff = -8

// frameResult is what code that is entered at entry has made of its stack when it
// comes to an address.
type frameResult struct {
	entry   uint64
	reached bool   // by a way on which the stack pointer is known:
	depth   uint64 // how far that is below the return address
	framed  bool   // with a frame of its own: the pair there is what the call to entry left
	loose   bool   // and with the stack pointer not known
	above   uint64 // else, of the frame pointer above the stack pointer
}

// frameAt is frameOf at a link-time address. Remembered.
func (t *Table) frameAt(entry, addr uint64) frameResult {
	got, known := t.frames.get(addr)
	if !known || got.entry != entry {
		v := codeView{t: t}
		got = frameOf(&v, entry, addr)
		if v.err == nil {
			t.frames.put(addr, got)
		}
	}
	return got
}

func frameOf(v *codeView, entry, addr uint64) (out frameResult) {
	out.entry = entry
	type place struct {
		at            uint64
		framed, loose bool
	}
	seen := make(map[place]bool)
	walks := []frameWalk{{at: entry}}
	for n, steps := 0, 0; n < len(walks); n++ {
		for w := walks[n]; !seen[place{w.at, w.framed, w.loose}] && steps < maxSteps; steps++ {
			if w.at == addr && !w.loose && !out.reached {
				out.reached, out.depth = true, uint64(-w.off)
			}
			if w.at == addr && w.framed {
				out.framed, out.loose, out.above = true, w.loose, uint64(recordOff-w.off)
				return out
			}
			seen[place{w.at, w.framed, w.loose}] = true
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
	return out
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
	case insLoseSP:
		w.loose = true
		return w.framed
	case insSetFP:
		w.framed = !w.loose && w.off == recordOff && w.saved == recordOff
	case insSetSP:
		w.off, w.loose = recordOff+in.value, false
		return w.framed
	case insLeave:
		was := w.framed
		w.off, w.saved, w.framed, w.loose = recordOff+8, 0, false, false
		return was
	}
	return true
}
