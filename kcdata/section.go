package kcdata

// Check walks the whole of plain, nested buffers not included. It gives the
// length of the buffer, from the begin marker to the end of the end marker.
func Check(plain []byte) (int, error) {
	r, err := NewReader(plain)
	if err != nil {
		return 0, err
	}
	w := r.walk()
	for {
		it, err := w.next()
		if err != nil {
			return 0, err
		}
		if it.Type == BufferEnd {
			return it.Offset + headerSize, nil
		}
	}
}

// TaskSection cuts out the bytes from the begin of the first task (or
// transitioning task) container to the end of the last one: what must be equal
// however many workers recorded it. It is empty when there is no task.
func TaskSection(plain []byte) ([]byte, error) {
	r, err := NewReader(plain)
	if err != nil {
		return nil, err
	}
	first, last, inTask := -1, -1, false
	for it, err := range r.Items() {
		if err != nil {
			return nil, err
		}
		if it.Depth > 0 {
			continue
		}
		switch it.Type {
		case TypeContainerBegin:
			t := it.ContainerType()
			inTask = t == TypeTask || t == TypeTransitioningTask
			if inTask && first < 0 {
				first = it.Offset
			}
		case TypeContainerEnd:
			if inTask {
				last = it.Offset + headerSize + len(it.raw)
			}
		}
	}
	if first < 0 {
		return nil, nil
	}
	return plain[first:last:last], nil
}
