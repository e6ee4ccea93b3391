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
//	 0      4   type id; the first item's is the magic, the last one's BUFFER_END
//	 4      4   payload and padding, in bytes
//	 8      8   by class of item:
//	              plain item        bits 0-3 bytes of padding, bit 7 set
//	              type definition   bits 0-3 bytes of padding
//	              container mark    the container's id, at begin and at end
//	              array             element type << 32 | number of elements
//	16    size  payload, then zeros up to a multiple of 16; an array says in its
//	            type, 0x20 to 0x2f, how many zeros
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
// container with the id it was opened with, and give siblings of one type
// different ids: readers key them by it. Define an own type before its first
// use, and once: some readers apply the last definition of a type to all its items.
// So what has no fixed size, text and bytes, is an array of one-byte records. Keep
// names under 32 bytes. End with BUFFER_END.
//
// # Duties of a reader
//
// Trust nothing: check every size against what is left, every count against its
// bytes, every depth against a bound. Skip types it does not know. Accept a
// struct that is longer than the one it knows, in arrays too, and one that is
// shorter: what is not there is absent, not zero. Stop at BUFFER_END.
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
//	    Else a reader that takes sizes on trust goes astray.
//	K2  A writer's method writes a whole item or nothing. Else what follows a
//	    full chunk cannot be read.
//	K3  Writing to a chain allocates nothing. Else the garbage collector runs
//	    while the machine is stopped.
//	K4  A chain and a writer give the same stream for the same calls, wherever
//	    the chunks end. Else collation depends on memory.
//	K5  On any bytes a reader ends without panic, in items or in a *FormatError.
//	    Files come from strangers.
//	K6  Containers nest at most MaxDepth deep, buffers MaxNested; the fields of a
//	    payload never outnumber its bytes. Else a small file costs hours.
//	K7  Unknown types are skipped, longer structs read by their known fields,
//	    shorter ones by their whole leading fields. Else old readers die.
//	K8  One spec table, sound by its own tests, is all that writer, reader and
//	    text know of types. Else they disagree.
//	K9  A type definition holds from where it stands, over built-in knowledge.
//	K10 Unwrap gives at most its limit and takes memory as bytes come. Else a
//	    hundred bytes can take all memory.
//	K11 What Compress wrote, Unwrap and others' zlib and zstd give back.
//	K12 The text form holds the whole buffer.
//	K13 Reader and spec table give of every Apple file what Apple's own decoder
//	    prints. Else they only read what we write.
//	K14 A snapshot is decoded within a budget in proportion to its file; where it is
//	    spent the file ends, as one that was cut. Else a page of bytes takes all
//	    memory.
//	K15 Of a file of ours Apple's decoder reads what we read: each type of ours is
//	    defined once, before its items, whatever their length, and nothing that
//	    stands beside its like is lost. Else the file describes itself wrongly.
package kcdata
