package testvm

import (
	"fmt"
	"strings"

	"stackshot/internal/testvm/fdt"
)

// bigLittle makes of QEMU's alike CPUs two clusters that differ: the first half
// of the CPUs get the first capacity, the others the second, and each cluster an
// L2 of its own, all of them one L3 (Devicetree binding "cpus", cpu-capacity.txt).
func bigLittle(tree *fdt.Tree, big, little uint32) error {
	cpus := tree.Root.Child("cpus")
	if cpus == nil {
		return fmt.Errorf("no node /cpus")
	}
	var all []*fdt.Node
	for _, n := range cpus.Children {
		if strings.HasPrefix(n.Name, "cpu@") {
			all = append(all, n)
		}
	}
	if len(all) < 2 {
		return fmt.Errorf("%d CPUs, want at least 2 for two clusters", len(all))
	}
	next := tree.MaxPhandle() + 1
	l3 := cache("l3-cache", 3, next, 4<<20)
	cpus.Children = append(cpus.Children, l3)
	for i, capacity := range []uint32{big, little} {
		l2 := cache(fmt.Sprintf("l2-cache%d", i), 2, next+1+uint32(i), 1<<20)
		l2.Set("next-level-cache", fdt.Cells(next))
		cpus.Children = append(cpus.Children, l2)
		for _, cpu := range all[i*len(all)/2 : (i+1)*len(all)/2] {
			cpu.Set("capacity-dmips-mhz", fdt.Cells(capacity))
			cpu.Set("next-level-cache", fdt.Cells(next+1+uint32(i)))
		}
	}
	return nil
}

func cache(name string, level, phandle, size uint32) *fdt.Node {
	n := &fdt.Node{Name: name}
	n.Set("compatible", fdt.String("cache"))
	n.Set("cache-unified", nil)
	n.Set("cache-level", fdt.Cells(level))
	n.Set("cache-size", fdt.Cells(size))
	n.Set("cache-line-size", fdt.Cells(64))
	n.Set("cache-sets", fdt.Cells(size/64/16))
	n.Set("phandle", fdt.Cells(phandle))
	return n
}
