package kcdata

import (
	"bytes"
	"iter"
	"unsafe"
)

// What a file may make its reader hold. A small file can unpack to much, and what
// is unpacked can stand for much more when it is decoded, named and shown. So the
// decoder has a budget in proportion to the file as it lies on the disk, which
// every item is charged to before it is decoded; and what a machine has only so
// many of is kept up to a number. A file that goes beyond the budget ends there, as
// one that breaks off; what goes beyond a number is dropped and counted in Problems.
const (
	baseMemory    = 128 << 20 // for any file
	memoryPerByte = 1024      // and for each of its bytes, as packed
)

// Memory is the budget for decoding a file of fileSize bytes, as it is packed.
func Memory(fileSize int64) int64 { return baseMemory + memoryPerByte*max(fileSize, 0) }

// What things are charged, in bytes: what is decoded of them and what the reports
// need for each on top.
const (
	taskCost         = int64(unsafe.Sizeof(Task{})) + 640
	threadCost       = int64(unsafe.Sizeof(Thread{})) + 1280
	frameCost        = 48  // an address of a stack
	userPlaceCost    = 768 // an address that no user stack of the task had before
	kernelPlaceCost  = 320 // an address that no kernel stack had before
	mappingCost      = 512
	symbolCost       = 192
	userSymbolCost   = 384
	pieceCost        = 64 // of a stack, with its bytes
	textCost         = 8  // a byte of text: reports may write it as \xNN, and hold it twice
	arrayElementCost = 64
)

// How many are kept.
const (
	maxCPUs       = 1 << 16 // the kernel has 8,192 at most
	maxTries      = 1 << 10
	maxModules    = 1 << 13
	maxMappings   = 1 << 16 // of a task
	maxWarnings   = 1 << 10
	maxNotRead    = 1 << 10 // of a task
	maxNamespaces = 1 << 6  // of a thread; the kernel nests 32
	maxInlined    = 128     // functions of one address
	maxText       = 1 << 20 // bytes of one string
	maxBuildID    = 64      // bytes
	maxSentence   = 4 << 10 // bytes of a warning, or of why something was not read
)

// What definitions may hold: a field is at least a byte of a payload of which the
// offsets have 16 bits, and a file defines the types that it has.
const (
	maxFields        = 1 << 16 // of one type
	maxDefinedFields = 1 << 18 // types and fields that hold at one time
)

// arrayLimit says what an element of an array is charged and how many are kept, 0:
// as many as the budget allows.
type arrayLimit struct {
	cost int64
	most int
}

var arrayLimits = map[Type]arrayLimit{
	TypeLinuxCPU:        {1024, maxCPUs},
	TypeLatencyInfoCPU:  {1024, maxCPUs},
	TypeLinuxPhases:     {1536, maxCPUs},
	TypeLinuxArena:      {1024, maxCPUs},
	TypeLinuxTry:        {1024, maxTries},
	TypeLinuxRan:        {768, 0},
	TypeLinuxLeftOut:    {512, 0},
	TypeLinuxTrace:      {512, 0},
	TypeLinuxModule:     {512, maxModules},
	TypeLinuxSymbol:     {symbolCost, 0},
	TypeLinuxUserSymbol: {userSymbolCost, 0},
	TypeLinuxMapping:    {mappingCost, maxMappings},
	TypeLinuxThreadNS:   {arrayElementCost, maxNamespaces},
}

func limitOf(elem Type) arrayLimit {
	if l, ok := arrayLimits[elem]; ok {
		return l
	}
	return arrayLimit{cost: arrayElementCost}
}

// take charges n bytes to the budget. Where they are not left it is false, and the
// file ends at the item that is being decoded; what names it.
func (p *snapshotParser) take(n int64, what string, args ...any) bool {
	if p.broken != nil {
		return false
	}
	if n <= p.left {
		p.left -= n
		return true
	}
	args = append(args, p.where(), n, p.left, p.memory)
	p.broken = badf(p.at, ErrTooLarge, what+" in %s: %d bytes of memory wanted, %d of %d are left", args...)
	return false
}

// afford charges cost(0), cost(1), ... and returns how many of n there is room for.
func (p *snapshotParser) afford(n int, what string, cost func(int) int64) int {
	for i := range n {
		if !p.take(cost(i), "%d %s, of which %d fit,", n, what, i) {
			p.problem("%d of %d %s in %s are not kept", n-i, n, what, p.where())
			return i
		}
	}
	return n
}

// text decodes a string of at most most bytes; of a longer one it keeps the
// beginning.
func (p *snapshotParser) text(it Item, most int) string {
	return p.textOf(it, untilNUL(it.Data), most)
}

func (p *snapshotParser) textOf(it Item, b []byte, most int) string {
	if len(b) > most {
		p.problem("item %#x in %s: %d bytes of text, of which %d are kept", uint32(it.Of()), p.where(), len(b), most)
		b = b[:most]
	}
	if !p.take(textCost*int64(len(b)), "item %#x, text of %d bytes", uint32(it.Of()), len(b)) {
		return ""
	}
	return string(b)
}

// texts takes NUL-terminated texts apart: an item holds one, but a decoder that joins
// the arrays of one type gives several.
func texts(it Item) iter.Seq[[]byte] {
	return bytes.SplitSeq(bytes.TrimSuffix(it.Data, []byte{0}), []byte{0})
}

// warning keeps a warning of the capture.
func (p *snapshotParser) warning(it Item) {
	p.sentences(it, maxWarnings-len(p.s.Warnings), &p.warnings, "a warning", func(s string) {
		p.s.Warnings = append(p.s.Warnings, splitWarning(s))
	})
}

// notRead keeps a reason why something of a task was not read.
func (p *snapshotParser) notRead(it Item) {
	t := p.task
	p.sentences(it, maxNotRead-len(t.EnrichFailed), &p.user.reasons, "a reason", func(s string) {
		t.EnrichFailed = append(t.EnrichFailed, s)
	})
}

// sentences keeps an item's texts as long as there is room, and counts the others.
func (p *snapshotParser) sentences(it Item, room int, more *int, what string, keep func(string)) {
	for b := range texts(it) {
		if room--; room < 0 {
			*more++
			continue
		}
		s := p.textOf(it, b, maxSentence)
		if p.broken != nil || !p.take(pieceCost, what) {
			return
		}
		keep(s)
	}
}

// cmdline takes a command line apart that is not longer than it may be.
func (p *snapshotParser) cmdline(b []byte) []string {
	if len(b) > maxText {
		p.problem("command line of %s: %d bytes, of which %d are kept", p.where(), len(b), maxText)
		b = b[:maxText]
	}
	args := bytes.Count(b, []byte{0})
	if !p.take(textCost*int64(len(b))+pieceCost*int64(args), "a command line of %d arguments, %d bytes,", args, len(b)) {
		return nil
	}
	return splitCmdline(b)
}
