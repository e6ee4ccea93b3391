// Package filter chooses threads of a snapshot by an expression, the language of --where:
//
//	state=D and module=ext4 and not (name=kworker* or age<10s)
//
//	text ─► Parse ─► Expr ─► Compile (snapshot, verdict) ─► Filter ─► Match, Select
//
// docs/filter.md describes the language. What the package promises:
//
//	F1  Whatever the text, Parse returns an expression or an *Error that names the column. Its
//	    work is bounded: by maxText and maxDepth.
//	F2  Parse of Expr.String gives the same expression.
//	F3  A comparison with a value that the file does not hold is false, and its negation true.
//	F4  Texts are compared as they are shown (show.Clean), so what is on the screen can be
//	    pasted.
//	F5  Only what the expression needs is computed.
package filter
