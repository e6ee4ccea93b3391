package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// byteSize is a flag in bytes: digits and K, M or G, powers of 1024.
type byteSize int64

var errSize = errors.New("want a positive number of bytes, K, M or G may follow")

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*b), 10)
}

// Type is the word for the value in --help.
func (b *byteSize) Type() string { return "SIZE" }

// Set reads a value.
func (b *byteSize) Set(s string) error {
	digits, shift := s, 0
	if i := len(s) - 1; i > 0 {
		if k := strings.IndexByte("KMG", s[i]&^0x20); k >= 0 {
			digits, shift = s[:i], 10*(k+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n == 0 || n > math.MaxInt64>>shift {
		return errSize
	}
	*b = byteSize(n << shift)
	return nil
}
