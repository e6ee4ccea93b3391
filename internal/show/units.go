package show

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Duration writes ns with two or three significant figures: nobody reads the
// seventh digit of a hang.
func Duration(ns uint64) string {
	d := time.Duration(min(ns, 1<<63-1))
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " us"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd %02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Micros writes ns as a number of microseconds, without the unit.
func Micros(ns uint64) string {
	if ns < 100_000 {
		return fmt.Sprintf("%.1f", float64(ns)/1e3)
	}
	return fmt.Sprintf("%.0f", float64(ns)/1e3)
}

// Fine writes ns with three or more significant figures below 10 ms, so that durations can
// be compared; longer ones as Duration does.
func Fine(ns uint64) string {
	switch {
	case ns < 1000:
		return fmt.Sprintf("%d ns", ns)
	case ns < 10_000:
		return fmt.Sprintf("%.2f us", float64(ns)/1e3)
	case ns < 1_000_000:
		return Micros(ns) + " us"
	case ns < 10_000_000:
		return fmt.Sprintf("%.2f ms", float64(ns)/1e6)
	}
	return Duration(ns)
}

// Percent writes the share of part in whole; "-" if whole is 0.
func Percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// Moment writes ns since the epoch as a time of day, UTC.
func Moment(ns uint64) string {
	return time.Unix(0, int64(min(ns, 1<<62))).UTC().Format("2006-01-02 15:04:05.000 UTC")
}

// Size writes a number of bytes in binary units.
func Size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 || f >= 100 {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Count writes "1 thread", "2 threads".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Thousands writes 4085 as "4,085".
func Thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Ranges writes numbers as "1-4,7,9-12": at most limit runs, then how many more
// numbers there are. The numbers need not be sorted; a repeated one counts once.
func Ranges(nums []uint64, limit int) string {
	s := slices.Clone(nums)
	slices.Sort(s)
	s = slices.Compact(s)
	var b strings.Builder
	runs := 0
	for i := 0; i < len(s); {
		if runs == limit {
			fmt.Fprintf(&b, " and %d more", len(s)-i)
			break
		}
		if runs > 0 {
			b.WriteByte(',')
		}
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		b.WriteString(strconv.FormatUint(s[i], 10))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.FormatUint(s[j], 10))
		}
		i = j + 1
		runs++
	}
	return b.String()
}
