package account

import (
	"encoding/json"
	"testing"

	"stackshot/kcdata"
)

// What was read stands in the JSON, also zero; what was not read has no key, and no limit is no number.
func TestCgroupsJSON(t *testing.T) {
	if CgroupsJSON(&kcdata.Snapshot{}) != nil {
		t.Error("an object without a record")
	}
	top := &kcdata.Cgroup{Path: "/", LinuxCgroup: kcdata.LinuxCgroup{Version: 2, Outcome: kcdata.CgroupDenied, Errno: 13, Flags: kcdata.CgroupAbove, Max: 9}}
	in := &kcdata.Cgroup{Path: "/a\x1b", Above: top, LinuxCgroup: kcdata.LinuxCgroup{
		Version: 2, Tasks: 1, Threads: 2, Present: kcdata.CgroupHasMax | kcdata.CgroupHasHigh | kcdata.CgroupHasSwap | kcdata.CgroupHasEvents | kcdata.CgroupHasPressure,
		Max: 4096, High: kcdata.CgroupUnlimited, MaxEvents: 7, SomeAvg10: 1234, FullTotalUs: 5, OOMKill: 3,
	}}
	s := &kcdata.Snapshot{CgroupsTaken: &kcdata.LinuxCgroupsTaken{Groups: 1, Above: 1, Flags: kcdata.CgroupsHung}, Cgroups: []*kcdata.Cgroup{top, in}}
	b, err := json.Marshal(CgroupsJSON(s))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tasks":0,"unknown":0,"with_threads":1,"above":1,"read":0,"gone":0,"denied":0,"late":0,"hidden":0,"failed":0,"rest":0,"monotonic_ns":0,"total_ns":0,"not_done":["hung"],` +
		`"groups":[{"path":"/","version":2,"outcome":"denied","errno":13,"flags":["above"],"tasks":0,"threads":0},` +
		`{"path":"/a\\x1b","version":2,"above":0,"outcome":"read","flags":[],"tasks":1,"threads":2,"max":4096,"swap":0,"unlimited":["high"],"low_events":0,"high_events":0,"max_events":7,"oom_events":0,` +
		`"pressure":{"some_avg10":12.34,"some_avg60":0,"some_total_us":0,"full_avg10":0,"full_avg60":0,"full_total_us":5}}]}`
	if string(b) != want {
		t.Errorf("%s\nwant\n%s", b, want)
	}
}
