package filter

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxDays bounds the days of a duration: it fits in 63 bits of ns.
const maxDays = 50_000

// durationOf reads what package time reads ("1h30m"), and days before it: "2d12h". ns.
func durationOf(v Value) (uint64, error) {
	word, ok := v.literal()
	days, rest, found := strings.Cut(word, "d")
	if !found {
		days, rest = "0", word
	}
	n, err := strconv.ParseUint(days, 10, 32)
	ok = ok && err == nil && n <= maxDays
	d := time.Duration(n) * 24 * time.Hour
	if rest != "" || !found {
		more, err := time.ParseDuration(rest)
		ok = ok && err == nil && strings.Trim(rest[:1], "0123456789.") == ""
		d += more
	}
	if !ok || d < 0 {
		return 0, fmt.Errorf("%s is no duration: want such as 250ms, 10s, 1h30m or 2d", v.quoted())
	}
	return uint64(d), nil
}
