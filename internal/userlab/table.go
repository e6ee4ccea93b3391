//go:build linux

package userlab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// StackPercent is of stacks that are valid. No stacks are none valid.
func (v Verdict) StackPercent() float64 { return percent(v.Valid, v.Stacks) }

// FramePercent is of frames that agree. No frames agree in none.
func (v Verdict) FramePercent() float64 { return percent(v.Agree, v.Frames) }

func percent(part, all int) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(part) / float64(all)
}

// Total adds verdicts up, those apart left out.
func Total(all []Verdict) Verdict {
	sum := Verdict{Process: "all", Unsure: map[string]int{}}
	for _, v := range all {
		if v.Apart {
			continue
		}
		sum.Stacks += v.Stacks
		sum.Valid += v.Valid
		sum.Frames += v.Frames
		sum.Agree += v.Agree
		sum.Failures = append(sum.Failures, v.Failures...)
		for why, n := range v.Unsure {
			sum.Unsure[why] += n
		}
	}
	return sum
}

// mostFailures is how many failures of a process Table spells out.
const mostFailures = 5

// Table prints verdicts: one line per process and one for all that count, then
// why stacks were wrong, and why gdb could not say.
func Table(all []Verdict) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "process\tvalid\tstacks\t%\tagree\tframes\t%\tgdb unsure")
	for _, v := range append(slices.Clone(all), Total(all)) {
		name := v.Process
		if v.Apart {
			name += " (apart)"
		}
		unsure := 0
		for _, n := range v.Unsure {
			unsure += n
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%d\t%d\t%.2f\t%d\n", name, v.Valid, v.Stacks, v.StackPercent(),
			v.Agree, v.Frames, v.FramePercent(), unsure)
	}
	w.Flush()
	for _, v := range all {
		for i, f := range v.Failures {
			if i == mostFailures {
				fmt.Fprintf(&b, "%s: and %d more\n", v.Process, len(v.Failures)-i)
				break
			}
			fmt.Fprintf(&b, "%s: %v\n", v.Process, f)
		}
		for _, why := range slices.Sorted(maps.Keys(v.Unsure)) {
			fmt.Fprintf(&b, "%s: gdb is unsure of %d: %s\n", v.Process, v.Unsure[why], why)
		}
	}
	return b.String()
}
