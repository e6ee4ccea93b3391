//go:build linux && (amd64 || arm64)

package hanglab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stackshot/internal/testneed"
	"stackshot/internal/userlab"
	"stackshot/internal/waits"
)

// right is a verdict that says of every case just what it wants, as JSON.
func right(all []*Running) map[string]any {
	var deadlocks, found, culprits []any
	for _, r := range all {
		person := func(role string) map[string]any {
			p := r.Cast[role]
			return map[string]any{"tid": p.Tid, "pid": p.Pid, "name": role}
		}
		people := func(roles []string) (list []any) {
			for _, role := range roles {
				list = append(list, person(role))
			}
			return list
		}
		if len(r.Cycle) > 0 { // it may begin anywhere
			d := append(people(r.Cycle[1:]), person(r.Cycle[0]))
			confidence := waits.Sure
			if r.Probably {
				confidence = waits.Likely
			}
			deadlocks = append(deadlocks, map[string]any{"confidence": confidence, "cycle": len(d), "threads": d, "behind": people(r.Behind)})
		}
		for _, k := range r.Culprits {
			m := person(k.Role)
			m["reason"], m["victims"] = k.Reasons[0], people(k.Victims)
			culprits = append(culprits, m)
		}
		for _, w := range r.Waits {
			m := person(w.Role)
			m["kind"], m["owners"] = w.Kinds[0], []any{}
			if w.Owner != "" {
				m["owners"] = []any{person(w.Owner)}
			}
			found = append(found, m)
		}
		for _, f := range r.Files {
			m := person(f.Role)
			m["kind"], m["owners"] = f.Kinds[0], append([]any{}, people(f.Owners)...)
			file := map[string]any{"remote": f.Remote, "mount": map[string]any{"point": "/tmp/x/" + f.Mount}}
			if len(f.Says) > 0 {
				file["says"] = f.Says[0]
			}
			m["file"] = file
			found = append(found, m)
		}
	}
	return map[string]any{"format": "stackshot-hang", "version": 1, "one_instant": true, "deadlocks": deadlocks, "waits": found, "culprits": culprits}
}

// madeUp is every case with numbers instead of threads.
func madeUp() []*Running {
	tid := 1000
	var all []*Running
	for _, c := range Cases() {
		r := &Running{Case: c, Cast: Cast{}}
		play := func(roles ...string) {
			for _, role := range roles {
				if _, there := r.Cast[role]; !there && role != "" {
					tid++
					r.Cast[role] = userlab.Part{Pid: tid, Tid: tid}
				}
			}
		}
		play(c.Cycle...)
		play(c.Behind...)
		for _, k := range c.Culprits {
			play(append(k.Victims, k.Role)...)
		}
		for _, w := range c.Waits {
			play(w.Role, w.Owner)
		}
		for _, f := range c.Files {
			play(append(f.Owners, f.Role)...)
		}
		play("bystander")
		all = append(all, r)
	}
	return all
}

func complaints(t *testing.T, verdict map[string]any, all []*Running) (errs []string) {
	t.Helper()
	b, err := json.Marshal(verdict)
	if err != nil {
		t.Fatal(err)
	}
	v, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		for _, err := range Check(v, r) {
			errs = append(errs, err.Error())
		}
	}
	return errs
}

// A verdict that says all that the cases want, and nothing more, is right; and with any
// part of it taken out, changed or doubled it is wrong.
func TestCheck(t *testing.T) {
	testneed.Live(t)
	all := madeUp()
	if errs := complaints(t, right(all), all); errs != nil {
		t.Fatalf("the right verdict: %q", errs)
	}
	broken := 0
	for _, r := range all {
		broken += spoiled(t, []*Running{r})
	}
	t.Logf("%d wrong verdicts", broken)
}

// spoiled spoils the right verdict in every way, and gives how many that were.
func spoiled(t *testing.T, all []*Running) (broken int) {
	t.Helper()
	for _, list := range []string{"deadlocks", "waits", "culprits"} {
		for i := range right(all)[list].([]any) {
			for name, spoil := range spoilers(all) {
				v := right(all)
				items := v[list].([]any)
				if !spoil(v, list, items[i].(map[string]any), i) {
					continue
				}
				broken++
				if errs := complaints(t, v, all); len(errs) == 0 {
					t.Errorf("%s %d, %s: nothing is wrong with %v", list, i, name, items[i])
				}
			}
		}
	}
	return broken
}

// spoilers make a verdict wrong; they say false where they do not apply.
func spoilers(all []*Running) map[string]func(v map[string]any, list string, item map[string]any, i int) bool {
	bystander := all[0].Cast["bystander"]
	stranger := map[string]any{"tid": bystander.Tid, "pid": bystander.Pid, "name": "x"}
	type object = map[string]any
	return map[string]func(v object, list string, item object, i int) bool{
		"missing": func(v object, list string, _ object, i int) bool {
			items := v[list].([]any)
			v[list] = append(items[:i:i], items[i+1:]...)
			return true
		},
		"kind": func(_ object, _ string, item object, _ int) bool {
			_, has := item["kind"]
			item["kind"] = "other"
			return has
		},
		"owner": func(_ object, _ string, item object, _ int) bool {
			_, has := item["owners"]
			item["owners"] = []any{stranger}
			return has && !ofGone(all, item)
		},
		"remote": func(_ object, _ string, item object, _ int) bool {
			file, has := item["file"].(object)
			if has {
				file["remote"] = "192.0.2.99:1"
			}
			return has
		},
		"says": func(_ object, _ string, item object, _ int) bool {
			file, has := item["file"].(object)
			if has = has && file["says"] != nil; has {
				file["says"] = "absurd"
			}
			return has
		},
		"mount": func(_ object, _ string, item object, _ int) bool {
			file, has := item["file"].(object)
			if has {
				file["mount"] = object{"point": "/mnt/other"}
			}
			return has && slices.ContainsFunc(all, func(r *Running) bool {
				return slices.ContainsFunc(r.Files, func(f FileWait) bool { return f.Mount != "" && r.Cast[f.Role].Tid == item["tid"] })
			})
		},
		"no file": func(_ object, _ string, item object, _ int) bool {
			file, has := item["file"].(object)
			delete(item, "file")
			return has && file["says"] != nil
		},
		"confidence": func(_ object, _ string, item object, _ int) bool {
			was, has := item["confidence"]
			item["confidence"] = map[any]any{waits.Sure: waits.Likely, waits.Likely: waits.Sure}[was]
			return has
		},
		"reason": func(_ object, _ string, item object, _ int) bool {
			_, has := item["reason"]
			item["reason"] = "absurd"
			return has
		},
		"victims": func(_ object, _ string, item object, _ int) bool {
			list, has := item["victims"].([]any)
			item["victims"] = list[:max(len(list)-1, 0)]
			return has
		},
		"more victims": func(_ object, _ string, item object, _ int) bool {
			list, has := item["victims"].([]any)
			item["victims"] = append(list, stranger)
			return has && !othersToo(all, item)
		},
		"culprit": func(_ object, list string, item object, _ int) bool {
			item["tid"] = bystander.Tid
			return list == "culprits"
		},
		"behind": func(_ object, _ string, item object, _ int) bool {
			list, has := item["behind"].([]any)
			item["behind"] = append(list, stranger)
			return has
		},
		"cycle": func(_ object, _ string, item object, _ int) bool {
			list, has := item["threads"].([]any)
			if has {
				item["threads"] = append([]any{stranger}, list...)
			}
			return has
		},
		"accused": func(v object, _ string, _ object, _ int) bool {
			more := object{"tid": bystander.Tid, "pid": bystander.Pid, "name": "x", "reason": "blocked", "victims": []any{}}
			v["culprits"] = append(v["culprits"].([]any), more)
			return true
		},
	}
}

// othersToo: where more than those of the case may wait, others are no error.
func othersToo(all []*Running, item map[string]any) bool {
	for _, r := range all {
		if (r.Alone || r.Read) && r.Cast[item["name"].(string)].Tid == item["tid"] {
			return true
		}
	}
	return false
}

// ofGone: where the owner is gone, a number that is no thread of the case may be named.
func ofGone(all []*Running, item map[string]any) bool {
	for _, r := range all {
		if r.Gone && r.Cast[item["name"].(string)].Tid == item["tid"] {
			return true
		}
	}
	return false
}

func TestParse(t *testing.T) {
	good := `{"format":"stackshot-hang","version":1,"deadlocks":[{"behind":[3,4]},{"behind":2},{"behind":[{"tid":9}]}]}`
	v, err := Parse([]byte(good))
	if err != nil || fmt.Sprint(v.Deadlocks) != "[{ 0 [] {2 [3 4]}} { 0 [] {2 []}} { 0 [] {1 [9]}}]" {
		t.Errorf("%+v, %v", v, err)
	}
	for _, bad := range []string{"", "{}", good + good, strings.Replace(good, "2}", `"two"}`, 1), strings.Replace(good, `:1`, `:2`, 1)} {
		if _, err := Parse([]byte(bad)); err == nil {
			t.Errorf("no error for %s", bad)
		}
	}
	if _, err := Parse(bytes.TrimSpace([]byte(good + "\n"))); err != nil {
		t.Error(err)
	}
}
