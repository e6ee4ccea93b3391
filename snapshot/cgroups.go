package snapshot

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"stackshot/internal/capture"
	"stackshot/internal/cgroups"
	"stackshot/kcdata"
)

// lookAtCgroups fills c.Cgroups. It runs while the machine's state is as it was at the release, not
// when all program files have been read.
func (s *Session) lookAtCgroups(c *capture.Raw) {
	l := cgroups.Looker{Proc: s.proc, Budget: cgroups.Budget, Most: cgroups.MostGroups}
	c.Cgroups = l.Look(members(c))
	if why := notRead(c.Cgroups); why != "" {
		c.Warn("cgroups_unread", why)
	}
}

// members are the tasks of a capture.
func members(c *capture.Raw) (out []cgroups.Member) {
	at := map[int32]int{}
	for i := range c.Recorded {
		p := &c.Recorded[i]
		if p.Item.Tgid == capture.IdleTask {
			continue
		}
		n, known := at[p.Item.Tgid]
		if !known {
			n = len(out)
			at[p.Item.Tgid] = n
			out = append(out, cgroups.Member{Tgid: int(p.Item.Tgid)})
		}
		out[n].Threads += p.Threads
	}
	return out
}

// notRead says which control groups' memory is not known, and why; "": all is read, or gone.
func notRead(c *capture.Cgroups) string {
	t := &c.Taken
	var why []string
	for _, r := range []struct {
		count uint32
		text  string
	}{
		{t.Late, "%d not in time"}, {t.Denied, "%d may not be read"}, {t.Hidden, "%d not below what is mounted here"}, {t.Failed, "%d failed"},
		{t.Rest, "%d more than the file has"}, {t.Unknown, "those of %d processes could not be found"},
	} {
		if r.count > 0 {
			why = append(why, fmt.Sprintf(r.text, r.count))
		}
	}
	if why == nil {
		return ""
	}
	return "of some control groups the memory is not known: " + strings.Join(why, ", ") + firstUnread(c.Groups)
}

// firstUnread names one of them.
func firstUnread(list []capture.Cgroup) string {
	for i := range list {
		g := &list[i]
		if g.Outcome == kcdata.CgroupRead || g.Outcome == kcdata.CgroupGone {
			continue
		}
		text := " (" + strings.ToValidUTF8(g.Path, "?")
		if g.Errno != 0 {
			text += ": " + unix.Errno(g.Errno).Error()
		}
		return text + ")"
	}
	return ""
}
