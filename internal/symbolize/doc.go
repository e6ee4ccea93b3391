// Package symbolize puts names of user functions into a snapshot: into a decoded
// one, for a report, or into the bytes of a file, so that it can travel. Where
// the names come from is its Namer's business.
//
// What it promises:
//
//	Y1  What a file says stays: a name gives way only to one that says more (a
//	    function where only the module was known, a source line where none was).
//	Y2  Every other byte of a file stays as it is, and in its place.
//	Y3  Twice is once: a file that nothing new is known about comes back byte
//	    for byte.
package symbolize
