package testvm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stackshot/internal/testneed"
	"stackshot/internal/topology"
)

// inLayoutVar says, in a guest, which layout this should be.
const inLayoutVar = "STACKSHOT_TESTVM_LAYOUT"

// Every layout looks, from inside, like what it is called. The outer half boots
// them; the inner half is TestInLayout.
func TestLayouts(t *testing.T) {
	testneed.Guests(t)
	b := builder(t)
	few := []string{"sockets2", "offline", "nofifo", "lockdown", "jiffies", "biglittle"} // each is made in another way
	for _, l := range Layouts {
		if !testneed.Length(slices.Contains(few, l.Name), true) {
			continue // make vm-all
		}
		t.Run(l.Name, func(t *testing.T) {
			k := requireVM(t, first(l.Arch, "amd64"), first(layoutTracks[l.Name], "6.12"))
			r, err := Run(t.Context(), b, Test{
				Package: "internal/testvm", Args: []string{"-run", "^TestInLayout$"}, Env: []string{inLayoutVar + "=" + l.Name},
				Guest: Config{Kernel: k, Layout: l, Limit: 3 * time.Minute, LogDir: t.TempDir()},
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != Passed || len(r.Tests) != 1 || r.Tests[0].Outcome != "PASS" {
				out, _ := os.ReadFile(filepath.Join(r.LogDir, "output.log"))
				t.Fatalf("%v\n%s", r, out)
			}
			t.Log(r)
		})
	}
}

// layoutTracks are the kernels of those that are not looked at in 6.12: a clock that
// stands still with interrupts off matters where interrupts can be off.
var layoutTracks = map[string]string{"jiffies": newest}

// layoutTruths are what holds inside each layout: files and their content.
var layoutTruths = map[string]map[string]string{
	"sockets2": {
		cpuDir + "cpu3/topology/physical_package_id": "0", cpuDir + "cpu4/topology/physical_package_id": "1",
		cpuDir + "cpu4/topology/package_cpus_list": "4-7",
	},
	"llc2": {
		cpuDir + "cpu0/topology/package_cpus_list":   "0-7",
		cpuDir + "cpu0/cache/index3/shared_cpu_list": "0-3", cpuDir + "cpu4/cache/index3/shared_cpu_list": "4-7",
	},
	"maxcpus1":  {cpuDir + "online": "0", cpuDir + "present": "0-1"},
	"isolcpus":  {cpuDir + "isolated": "1", cpuDir + "online": "0-3"},
	"nohz_full": {cpuDir + "nohz_full": "1", cpuDir + "online": "0-3"},
	"offline":   {cpuDir + "online": "0,2-3", cpuDir + "offline": "1"},
	"kptr":      {"/proc/sys/kernel/kptr_restrict": "2"},
	"nofifo":    {},
	"lockdown":  {"/sys/kernel/security/lockdown": "none integrity [confidentiality]"},
	"jiffies":   {clockDir + "current_clocksource": "jiffies"},
	"biglittle": {
		cpuDir + "cpu0/cpu_capacity": "1024", cpuDir + "cpu3/cpu_capacity": "1024",
		cpuDir + "cpu4/cpu_capacity": "446", cpuDir + "cpu7/cpu_capacity": "446",
		cpuDir + "cpu0/cache/index2/shared_cpu_list": "0-3", cpuDir + "cpu7/cache/index2/shared_cpu_list": "4-7",
		cpuDir + "cpu0/topology/cluster_cpus_list": "0-3",
	},
}

const (
	cpuDir   = "/sys/devices/system/cpu/"
	clockDir = "/sys/devices/system/clocksource/clocksource0/"
)

func TestInLayout(t *testing.T) {
	testneed.Guests(t)
	name := os.Getenv(inLayoutVar)
	if name == "" {
		t.Skip("for a guest, see TestLayouts")
	}
	truths, ok := layoutTruths[name]
	if !ok {
		t.Fatalf("nothing is known about layout %q", name)
	}
	for file, want := range truths {
		b, err := os.ReadFile(file)
		if got := strings.TrimSpace(string(b)); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	if name != "lockdown" {
		checkTracing(t)
	}
	if err := realTime(); (err != nil) != (name == "nofifo") {
		t.Errorf("SCHED_FIFO: %v", err)
	}
	top, err := topology.Machine()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", top)
}

// Each layout has its name once and is described, and only known names are found.
func TestLayoutNames(t *testing.T) {
	names := layoutNames()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(Layouts) {
		t.Errorf("names %q", names)
	}
	for _, l := range Layouts {
		got, err := LayoutNamed(l.Name, first(l.Arch, "arm64"))
		if err != nil || got.What == "" {
			t.Errorf("%s: %+v, %v", l.Name, got, err)
		}
	}
	for _, c := range [][2]string{{"nosuch", "amd64"}, {"biglittle", "amd64"}, {"llc2", "arm64"}} {
		if _, err := LayoutNamed(c[0], c[1]); err == nil {
			t.Errorf("layout %s on %s was found", c[0], c[1])
		}
	}
}
