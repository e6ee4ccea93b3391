// Package kcdata reads and writes KCData, the self-describing container that
// Apple's kernels write stackshots in.
//
// A buffer is a flat run of items. An item is a header of 16 bytes and a
// payload; a type id says what the payload is. All integers are little-endian.
//
//	 0        4        8                16                 16+size
//	┌────────┬────────┬─────────────────┬─────────────┬─────┐
//	│ type   │ size   │ flags           │ payload     │ pad │
//	└────────┴────────┴─────────────────┴─────────────┴─────┘
//	            size counts payload and pad
//
//	OFFSET SIZE DESCRIPTION
//	 0      4   type id: the magic for the first item, BUFFER_END for the last one
//	 4      4   payload and padding, in bytes
//	 8      8   by class of item:
//	              plain item        bits 0-3 bytes of padding, bit 7 set
//	              type definition   bits 0-3 bytes of padding
//	              container mark    the container's id, at begin and at end
//	              array             element type << 32 | number of elements
//	16    size  payload, then zeros up to a multiple of 16; the type of an array,
//	            0x20 to 0x2f, says how many zeros
//
// This whole buffer holds a page size of 4096 in a task with id 7:
//
//	0000  07 58 a2 59 00 00 00 00 80 00 00 00 00 00 00 00  begin, STACKSHOT
//	0010  13 00 00 00 10 00 00 00 07 00 00 00 00 00 00 00  CONTAINER_BEGIN, id 7
//	0020  03 09 00 00 00 00 00 00 00 00 00 00 00 00 00 00    of type TASK
//	0030  10 09 00 00 10 00 00 00 8c 00 00 00 00 00 00 00  KERN_PAGE_SIZE, padded by 12
//	0040  00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00    4096
//	0050  14 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00  CONTAINER_END, id 7
//	0060  ed 58 91 f1 00 00 00 00 00 00 00 00 00 00 00 00  BUFFER_END
//
// # Duties of a writer
//
// Write fixed-width, packed, little-endian fields. Zero the padding. Close every
// container with the id of its begin, and give siblings of one type different ids,
// because readers key them by id. Define each type of your own once, before its first
// use: some readers apply the last definition of a type to all its items. Text and
// bytes have no fixed size, so write them as arrays of one-byte records. Keep names
// under 32 bytes. End with BUFFER_END.
//
// # Duties of a reader
//
// Trust nothing: check every size against the bytes that are left, every count against
// its payload, every depth against a bound. Skip unknown types. Accept a struct that is
// longer than the known one, in arrays too, and one that is shorter: the fields that it
// lacks are absent, not zero. Stop at BUFFER_END, and say if more follows.
//
// # Growth
//
// A type is never removed and an id never reused. A struct changes only by
// fields appended under the same id, so that its size tells its version. A magic
// is never the byteswap of another.
//
// # Invariants
//
// Tests carry these numbers.
//
//	K1  An item written here begins at a multiple of 16 and its padding is zero.
//	    Else a reader that trusts sizes reads the wrong bytes.
//	K2  A writer's method writes a whole item or nothing. Else readers cannot read
//	    what follows a full chunk.
//	K3  Writing to a chain allocates nothing. Else the garbage collector runs
//	    while the machine is stopped.
//	K4  A chain and a writer give the same stream for the same calls, wherever
//	    the chunks end. Else collation depends on memory.
//	K5  A reader never panics, whatever the bytes: it gives items or a *FormatError.
//	    Files come from strangers.
//	K6  Containers nest at most MaxDepth deep, buffers MaxNested; the fields of a
//	    payload never outnumber its bytes. Else reading a small file takes hours.
//	K7  A reader skips unknown types, reads the known fields of a longer struct and
//	    the whole leading fields of a shorter one. Else it refuses newer files.
//	K8  Writer, reader and text take their knowledge of types from one spec table,
//	    which has tests of its own. Else they disagree.
//	K9  A type definition overrides built-in knowledge, from where it stands.
//	K10 Read and Unwrap return at most their limit, whatever codings stand in one
//	    another, and take memory as bytes come, none for what stands behind the end.
//	    Else a hundred bytes can take all memory.
//	K11 Unwrap, and any other zlib or zstd, give back what Compress wrote.
//	K12 The text form holds the whole buffer.
//	K13 For every Apple file, reader and spec table give what Apple's own decoder
//	    prints. Else they only read what we write.
//	K14 A snapshot is decoded within a budget in proportion to its file. If the
//	    budget is spent, the file ends there like one that was cut. Else a page of
//	    bytes takes all memory.
//	K15 Apple's decoder reads the same from a file of ours as we do: each type of
//	    ours is defined once, before its items, whatever their length, and no item
//	    hides another one of its type. Else the file describes itself wrongly.
//	K16 An Editor writes the items that it read with the edits that were made and no
//	    other change, wherever the pieces are cut. Else an edit damages a file.
package kcdata
