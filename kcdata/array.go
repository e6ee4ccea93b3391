package kcdata

// oldElemSize are the sizes of all elements that an array of the old form may hold. Such
// an array does not record the size itself.
var oldElemSize = map[Type]int{
	TypeLibraryLoadinfo:      20,
	TypeLibraryLoadinfo64:    24,
	TypeKernStackFrame:       8,
	TypeUserStackFrame:       8,
	TypeKernStackFrame64:     16,
	TypeUserStackFrame64:     16,
	TypeDonatingPids:         4,
	TypeThreadDeltaSnapshot:  48,
	TypeCrashCrashedThreadID: 8,
}

// acceptArray checks an array of either form; both read as TypeArray.
func acceptArray(it *Item) error {
	it.Type = TypeArray
	count, size := uint64(uint32(it.Flags)), len(it.raw)
	if it.wire == TypeArray {
		return acceptOldArray(it, count)
	}
	pad := int(it.wire & padMask)
	if count == 0 {
		if size != 0 || pad != 0 {
			return badf(it.Offset, ErrBadArray, "array of 0 elements in %d bytes", size)
		}
		return nil
	}
	if pad > size || count > uint64(size-pad) || uint64(size-pad)%count != 0 {
		return badf(it.Offset, ErrBadArray, "array of %d elements in %d bytes, %d of them padding", count, size, pad)
	}
	it.elemSize = (size - pad) / int(count)
	it.Data = it.raw[: size-pad : size-pad]
	return nil
}

func acceptOldArray(it *Item, count uint64) error {
	elem := Type(it.Flags >> 32)
	n, legal := oldElemSize[elem]
	if !legal {
		return badf(it.Offset, ErrBadArray, "array of the old form with elements of type %v", elem)
	}
	if count*uint64(n) > uint64(len(it.raw)) {
		return badf(it.Offset, ErrBadArray, "array of %d elements of %d bytes in %d bytes", count, n, len(it.raw))
	}
	it.elemSize = n
	end := int(count) * n
	it.Data = it.raw[:end:end]
	return nil
}
