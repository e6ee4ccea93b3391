// Package symbolize puts names of user functions into a snapshot: into a decoded
// snapshot, for a report, or into the bytes of a file, so that the file has them on any
// machine. A Namer supplies the names.
//
// What it promises:
//
//	Y1  What a file says is kept: a name is replaced only by one that says more (a
//	    function where only the module was known, a source line where none was).
//	Y2  Every other byte of a file stays as it is, and in its place.
//	Y3  To symbolize twice gives the same as once: a file for which nothing new is known
//	    is returned byte for byte.
package symbolize
