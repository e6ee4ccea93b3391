//go:build linux

package userlab

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
