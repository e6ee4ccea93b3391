// Package licenses holds the licences of everything that is compiled into the
// stackshot command: its own, the BPF objects', those of the modules it imports and
// Go's, each text once, under the names of what it covers.
//
// licenses.txt is made from the modules' own files:
//
//	go generate ./internal/licenses
package licenses

import _ "embed"

//go:generate go run gen.go

// Text is licenses.txt.
//
//go:embed licenses.txt
var Text string
