package testread

import "stackshot/kcdata"

// TaskSection cuts out of a plain file the bytes from the begin of the first task (or
// transitioning task) container to the end of the last one. They must be equal however
// many workers recorded them. It is empty if the file has no task. Errors: those of
// NewReader and Items.
func TaskSection(plain []byte) ([]byte, error) {
	r, err := kcdata.NewReader(plain)
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
		case kcdata.TypeContainerBegin:
			t := it.ContainerType()
			inTask = t == kcdata.TypeTask || t == kcdata.TypeTransitioningTask
			if inTask && first < 0 {
				first = it.Offset
			}
		case kcdata.TypeContainerEnd:
			if inTask {
				last = it.Offset + markSize
			}
		}
	}
	if first < 0 {
		return nil, nil
	}
	return plain[first:last:last], nil
}

// markSize is the size in bytes of a CONTAINER_END: a header without a payload.
const markSize = 16
