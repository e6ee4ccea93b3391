package kcdata

// TracePlace is the name of a place in LinuxTrace, and what its datum is.
type TracePlace struct {
	Name  string
	Datum string // "": none
	Hex   bool   // the datum is a word of bits
}

// tracePlaces describes each Trace* constant of linux.go; a test checks that.
var tracePlaces = [...]TracePlace{
	TraceTaken:    {Name: "taken"},
	TraceArrived:  {Name: "arrived", Datum: "state", Hex: true},
	TraceDecided:  {Name: "decided", Datum: "state", Hex: true},
	TraceHeld:     {Name: "held", Datum: "state", Hex: true},
	TraceCensus:   {Name: "census", Datum: "tasks"},
	TraceItem:     {Name: "item", Datum: "number"},
	TraceItemEnd:  {Name: "item end", Datum: "number"},
	TraceChunk:    {Name: "chunk", Datum: "bytes"},
	TraceNoSpace:  {Name: "no space", Datum: "record"},
	TraceDrained:  {Name: "drained", Datum: "state", Hex: true},
	TraceVerified: {Name: "verified", Datum: "threads"},
	TraceReleased: {Name: "released", Datum: "state", Hex: true},
	TraceLeft:     {Name: "left"},
}

// TracePlaceOf describes a Trace* constant; ok is false for a place that this
// program does not know.
func TracePlaceOf(place uint32) (p TracePlace, ok bool) {
	if uint64(place) >= uint64(len(tracePlaces)) {
		return TracePlace{}, false
	}
	p = tracePlaces[place]
	return p, p.Name != ""
}
