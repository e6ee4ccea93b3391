package topology

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestParseCPUList(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []int
	}{
		{"", nil}, {"\n", nil}, {"(null)\n", nil}, {"0\n", []int{0}}, {"0-3", []int{0, 1, 2, 3}},
		{" 5 , 1-2 ", []int{1, 2, 5}}, {"3,1,3,2-3", []int{1, 2, 3}}, {"65535", []int{65535}}, {"007", []int{7}},
	} {
		got, err := ParseCPUList(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, %v, want %v", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{",", "1,", "-", "1-", "-1", "3-1", "a", "1-2-3", "+1", "1_0", "65536",
		"0-4294967295", "18446744073709551616", "0x1", "1 2", "0-6:2", "١"} {
		if got, err := ParseCPUList(in); !errors.Is(err, ErrBadList) || got != nil {
			t.Errorf("%q: %v, %v, want ErrBadList", in, got, err)
		}
	}
}

// The text form of a set says that set and no other.
func TestCPUListRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		set := map[int]bool{}
		var cpus []int
		for range r.IntN(40) {
			cpu := r.IntN(1 << (1 + r.IntN(16)))
			set[cpu] = true
			cpus = append(cpus, cpu)
		}
		before := slices.Clone(cpus)
		back, err := ParseCPUList(FormatCPUList(cpus))
		if err != nil || len(back) != len(set) || !slices.IsSorted(back) {
			t.Fatalf("%v: %q gave %v, %v", cpus, FormatCPUList(cpus), back, err)
		}
		for _, cpu := range back {
			if !set[cpu] {
				t.Fatalf("%v: %d came from nowhere", cpus, cpu)
			}
		}
		if !slices.Equal(cpus, before) {
			t.Fatal("FormatCPUList changed its argument")
		}
	}
}

func FuzzParseCPUList(f *testing.F) {
	for _, s := range []string{"0-3,5", "", "1,,2", "65535-0", "0-65535,0-65535,0-65535"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := ParseCPUList(s)
		if err != nil {
			if cpus != nil || !errors.Is(err, ErrBadList) {
				t.Fatalf("%q: %v, %v", s, cpus, err)
			}
			return
		}
		for i, cpu := range cpus {
			if cpu < 0 || cpu > MaxCPU || (i > 0 && cpu <= cpus[i-1]) {
				t.Fatalf("%q: %v does not ascend within bounds", s, cpus)
			}
		}
		back, err := ParseCPUList(FormatCPUList(cpus))
		if err != nil || !slices.Equal(back, cpus) {
			t.Fatalf("%q: %v came back as %v, %v", s, cpus, back, err)
		}
	})
}

func FuzzParseClasses(f *testing.F) {
	for _, s := range []string{"0=P,1=E", "0-3=P,4-7=e", "0,2=P,1,3=E", "0=P,0=E", "=P", "1", ","} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		kinds, err := parseClasses(s)
		if (err == nil) == (kinds == nil) {
			t.Fatalf("%q: %v, %v", s, kinds, err)
		}
		for cpu, kind := range kinds {
			if cpu < 0 || cpu > MaxCPU || (kind != KindP && kind != KindE) {
				t.Fatalf("%q: CPU %d is %v", s, cpu, kind)
			}
		}
	})
}
