package report

import "stackshot/internal/show"

// Clean makes a name from the machine fit to be shown (R2), see show.Clean.
func Clean(s string) string { return show.Clean(s) }

func fit(s string, width int) string         { return show.Fit(s, width) }
func wrap(s string, width int) []string      { return show.Wrap(s, width) }
func duration(ns uint64) string              { return show.Duration(ns) }
func size(n uint64) string                   { return show.Size(n) }
func count(n int, noun string) string        { return show.Count(n, noun) }
func ranges(nums []uint64, limit int) string { return show.Ranges(nums, limit) }
