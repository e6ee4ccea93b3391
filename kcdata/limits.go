package kcdata

import (
	"bytes"
	"iter"
	"unsafe"
)

// How much memory a file may cost its reader. A small file can unpack to many bytes, and
// these can stand for much more when they are decoded, named and shown. So the decoder has
// a budget in proportion to the size of the packed file, and charges every item to it
// before decoding it. A file that exceeds the budget ends there, like one that breaks off.
// And there is a bound for things of which a machine has few: the decoder drops what
// exceeds the bound and counts it in Problems.
const (
	baseMemory    = 128 << 20 // for any file
	memoryPerByte = 1024      // and for each of its bytes, as packed
)

// Memory is the budget, in bytes, for decoding a file of fileSize bytes (packed).
func Memory(fileSize int64) int64 { return baseMemory + memoryPerByte*max(fileSize, 0) }

// What each thing costs, in bytes: its decoded form and what the reports need for it.
const (
	taskCost         = int64(unsafe.Sizeof(Task{})) + 640
	threadCost       = int64(unsafe.Sizeof(Thread{})) + 1280
	frameCost        = 48  // an address in a stack
	userPlaceCost    = 768 // an address that is new to the user stacks of the task
	kernelPlaceCost  = 320 // an address that is new to the kernel stacks
	mappingCost      = 512
	symbolCost       = 192
	userSymbolCost   = 384
	pieceCost        = 64 // a piece of a stack, without its bytes; a text, without its bytes
	textCost         = 8  // a byte of text: reports may write it as \xNN, and hold it twice
	arrayElementCost = 64
	futexCost        = 512
	fileCost         = 512 // an open file, an end, a lock of a file
	mountCost        = 2048
	cgroupCost       = 1024
)

// Bounds: how many are kept.
const (
	maxCPUs       = 1 << 16 // the kernel has 8,192 at most
	maxTries      = 1 << 10
	maxModules    = 1 << 13
	maxMappings   = 1 << 16 // of a task
	maxWarnings   = 1 << 10
	maxNotRead    = 1 << 10 // of a task
	maxNamespaces = 1 << 6  // of a thread; the kernel nests 32
	maxInlined    = 128     // functions of one address
	maxFutexes    = 128     // of a thread; the kernel takes as many in one call
	maxFiles      = 64      // open files that one thread waits at; this version writes 16
	maxMounts     = 1 << 13
	maxDevices    = 1 << 13
	maxCgroups    = 1 << 14
	maxText       = 1 << 20 // bytes of one string
	maxBuildID    = 64      // bytes
	maxSentence   = 4 << 10 // bytes of a warning, or of why something was not read
)

// Bounds of definitions. A field has at least one byte, and its offset has 16 bits.
const (
	maxFields        = 1 << 16 // of one type
	maxDefinedFields = 1 << 18 // types and fields that are defined at one time
)

// arrayLimit is what one element of an array costs, in bytes, and how many are kept; 0: as
// many as the budget allows.
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
	TypeLinuxFutex:      {futexCost, maxFutexes},
	TypeLinuxFile:       {fileCost, maxFiles},
	TypeLinuxSocket:     {fileCost, maxFiles},
	TypeLinuxEnd:        {fileCost, 0},
	TypeLinuxFileLock:   {fileCost, 0},
	TypeLinuxFUSE:       {fileCost, 0},
	TypeLinuxMount:      {mountCost, maxMounts},
	TypeLinuxDevice:     {fileCost, maxDevices},
	TypeLinuxCgroup:     {cgroupCost, maxCgroups},
}

func limitOf(elem Type) arrayLimit {
	if l, ok := arrayLimits[elem]; ok {
		return l
	}
	return arrayLimit{cost: arrayElementCost}
}

// take charges n bytes to the budget. It is false if fewer are left; then the file ends at
// the item that is being decoded, with an error in which what and args name the item.
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

// afford charges cost(0), cost(1), ... and returns how many of n the budget allows.
func (p *snapshotParser) afford(n int, what string, cost func(int) int64) int {
	for i := range n {
		if !p.take(cost(i), "%d %s, of which %d fit,", n, what, i) {
			p.problem("%d of %d %s in %s are not kept", n-i, n, what, p.where())
			return i
		}
	}
	return n
}

// text decodes a string. It keeps the first most bytes of it.
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

// texts gives the NUL-terminated texts of an item. An item of ours holds one; one that joins
// several arrays of one type, as Apple's decoder does, holds more.
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

// sentences keeps an item's texts while there is room, and counts the others in more.
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

// cmdline splits a command line into its arguments, after cutting it at maxText.
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
