package kcdata

// What the tests of package kcdata_test use of this package and of its other tests.
const (
	HeaderSize = headerSize
	FirstLinux = Type(firstLinux)
	LastLinux  = Type(lastLinux)
)

var (
	Buffer  = buffer
	ReadAll = readAll
	OK      = ok
)
