package testread

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"stackshot/kcdata"
)

// Want fails the test unless Apple's decoder reads all of a plain file of ours, with
// the texts and bytes that our own decoder finds, and the format's own description has
// each item where it stands.
func Want(tb testing.TB, plain []byte) {
	tb.Helper()
	n, faults, err := Decode(plain)
	if err != nil {
		tb.Errorf("Apple's decoder gives up: %v", err)
		return
	}
	for _, f := range faults {
		tb.Errorf("Apple's decoder: %s", f)
	}
	strays, err := misplaced(plain)
	for _, s := range strays {
		tb.Errorf("not as docs/format.md says: %s", s)
	}
	s, err2 := kcdata.ParseSnapshot(plain)
	if err != nil || err2 != nil {
		tb.Errorf("our own decoder: %v, %v", err, err2)
		return
	}
	for _, u := range unlikely(plain, s) {
		tb.Errorf("not as docs/format.md says: %s", u)
	}
	for _, d := range differences(n, s) {
		tb.Errorf("Apple's decoder: %s", d)
	}
}

// differences are the texts and bytes of s that n does not have so.
func differences(n *Node, s *kcdata.Snapshot) (out []string) {
	same := func(n *Node, key string, want ...string) {
		var got any = n.Items[key]
		if b, isText := got.([]byte); isText {
			got = strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
		} else if text, isText := got.(string); isText {
			got = []string{text}
		} else if got == nil {
			got = []string{}
		}
		for len(want) == 1 && want[0] == "" {
			want = nil
		}
		if want == nil {
			want = []string{}
		}
		if len(want) == 0 && reflect.DeepEqual(got, []string{""}) {
			return // our decoder does not tell an empty text from none
		}
		if len(out) < maxFaults && !reflect.DeepEqual(got, want) {
			out = append(out, key+": "+strings.Join(want, "|")+" is read as "+strings.Join(got.([]string), "|"))
		}
	}
	for key, want := range map[string]string{
		"linux_hostname": s.Hostname, "linux_release": s.Release, "linux_arch": s.Arch, "linux_boot_id": s.BootID,
		"linux_engine": s.Engine, "linux_isolation": s.Isolation, "linux_request": s.Request, "linux_tool_version": s.ToolVersion,
		"linux_loadavg": s.Loadavg, "linux_meminfo": s.Meminfo, "linux_pressure": s.Pressure, "osversion": s.Version,
	} {
		same(n, key, want)
	}
	var warnings []string
	for _, w := range s.Warnings {
		warnings = append(warnings, strings.TrimPrefix(w.Code+": "+w.Text, ": "))
	}
	same(n, "linux_warning", warnings...)
	for _, t := range s.Tasks {
		in := "task_snapshots"
		if t.Transitioning {
			in = "transitioning_task_snapshots"
		}
		task := n.In[in][t.ID]
		if task == nil {
			return append(out, "a task is not there")
		}
		path := "p_path"
		if task.Items["linux_exe_path"] != nil {
			path = "linux_exe_path"
		}
		same(task, path, t.ExePath)
		same(task, "linux_cgroup_path", t.Cgroup)
		same(task, "linux_enrich_failed", t.EnrichFailed...)
		same(task, "linux_perf_map", t.PerfMap)
		if task.Items["linux_cmdline"] != nil {
			same(task, "linux_cmdline", t.Cmdline...)
		}
		for _, th := range t.Threads {
			thread := task.In["thread_snapshots"][th.ID]
			if thread == nil {
				return append(out, "a thread is not there")
			}
			same(thread, "pth_name", th.Name)
			if how, _ := thread.Items["linux_user_how"].([]byte); !bytes.Equal(how, th.UserHow) {
				out = append(out, "linux_user_how differs")
			}
		}
	}
	return out
}
