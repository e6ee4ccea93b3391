package cgroups

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"stackshot/kcdata"
)

// ErrSyntax is the cause of every error of a parser here.
var ErrSyntax = errors.New("not what the kernel writes")

func syntax(what string, text []byte) error {
	return fmt.Errorf("%s: %.40q %w", what, text, ErrSyntax)
}

// parseAmount reads a file of one number.
func parseAmount(b []byte) (uint64, error) {
	n, err := number(bytes.TrimSuffix(b, []byte("\n")))
	if err != nil {
		return 0, syntax("amount", b)
	}
	return n, nil
}

// leastUnlimited: version 1 says LONG_MAX, rounded down to a page, for no limit. A page has 64 KiB
// at most.
const leastUnlimited = 1<<63 - 1<<16

// parseLimit reads a file of one number, or of "max".
func parseLimit(b []byte) (uint64, error) {
	if string(bytes.TrimSuffix(b, []byte("\n"))) == "max" {
		return kcdata.CgroupUnlimited, nil
	}
	n, err := parseAmount(b)
	if n >= leastUnlimited {
		n = kcdata.CgroupUnlimited
	}
	return n, err
}

// number reads decimal digits and nothing else.
func number(b []byte) (uint64, error) {
	if len(b) > 0 && b[0] == '+' {
		return 0, ErrSyntax
	}
	return strconv.ParseUint(string(b), 10, 64)
}

// parseCounts reads a file of "name number" lines. It calls put with each.
func parseCounts(b []byte, put func(name string, n uint64)) error {
	for line := range bytes.Lines(b) {
		name, digits, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		n, err := number(digits)
		if !ok || err != nil || len(name) == 0 {
			return syntax("line", line)
		}
		put(string(name), n)
	}
	return nil
}

// pressure is one line of a file of pressure.
type pressure struct {
	avg10, avg60 uint32 // 1/100 %
	totalUs      uint64
}

// parsePressure reads "some avg10=0.00 avg60=0.00 avg300=0.00 total=0" and "full …".
func parsePressure(b []byte) (some, full pressure, err error) {
	seen := 0
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 0 {
			return some, full, syntax("pressure", line)
		}
		to := &pressure{}
		switch string(f[0]) {
		case "some":
			to, seen = &some, seen|1
		case "full":
			to, seen = &full, seen|2
		}
		if err := to.parse(f[1:]); err != nil {
			return some, full, syntax("pressure", line)
		}
	}
	if seen != 3 {
		return some, full, syntax("pressure", b)
	}
	return some, full, nil
}

func (p *pressure) parse(fields [][]byte) (err error) {
	for _, f := range fields {
		name, value, _ := bytes.Cut(f, []byte("="))
		switch string(name) {
		case "avg10":
			p.avg10, err = hundredths(value)
		case "avg60":
			p.avg60, err = hundredths(value)
		case "total":
			p.totalUs, err = number(value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hundredths reads "12.34" as 1234.
func hundredths(b []byte) (uint32, error) {
	whole, part, ok := bytes.Cut(b, []byte("."))
	w, err1 := number(whole)
	p, err2 := number(part)
	if !ok || err1 != nil || err2 != nil || len(part) != 2 || w > 1000 {
		return 0, ErrSyntax
	}
	return uint32(w*100 + p), nil
}
