package account

import (
	"stackshot/internal/model"
	"stackshot/internal/show"
	"stackshot/kcdata"
)

// filesNotDone says in the report what was not done.
var filesNotDone = []struct {
	flag uint32
	text string
}{
	{kcdata.FilesNoPass, "the pass over all open files was not made"}, {kcdata.FilesTimeUp, "time was up"},
	{kcdata.FilesHung, "a read did not end in time"}, {kcdata.FilesTooWanted, "threads wait at more files than were looked for"},
	{kcdata.FilesTooMany, "there are more ends than the file has"}, {kcdata.FilesNoLocks, "locks of files were not read"},
	{kcdata.FilesNoMounts, "mounts were not read"},
}

// BriefFiles says how many threads wait at open files, and how it went to look for the other ends;
// "" if open files were not recorded.
func BriefFiles(s *kcdata.Snapshot) string {
	t := s.FilesTaken
	if t == nil || t.Threads == 0 && t.Flags == 0 {
		return ""
	}
	var out, looked show.Parts
	out.Add("open files: %s at %s", count(t.Threads, "thread"), count(t.Files, "file"))
	looked.If(t.Sources&kcdata.FilesHasPass != 0, "%s looked at in %s, %s found", count(t.Looked, "descriptor"), show.Duration(t.PassNs), show.Thousands(uint64(t.Ends)))
	looked.If(t.Sources&kcdata.FilesHasProc != 0, "%s of %s looked at in /proc in %s, %s found", count(t.Looked, "descriptor"),
		count(t.Processes, "process"), show.Duration(t.PassNs), show.Thousands(uint64(t.Ends)))
	looked.If(t.Unsettled > 0, "%s could not be looked at", count(t.Unsettled, "process"))
	looked.If(t.Moved > 0, "%s had gone on by then", count(t.Moved, "thread"))
	out.If(len(looked) > 0, "other ends: %s", looked.Join(", "))
	for _, n := range filesNotDone {
		out.If(t.Flags&n.flag != 0, "%s", n.text)
	}
	return out.Join("; ")
}

func count[N uint32 | uint64](n N, noun string) string {
	plural := "s"
	if noun == "process" {
		plural = "es"
	}
	if n == 1 {
		plural = ""
	}
	return show.Thousands(uint64(n)) + " " + noun + plural
}

// FilesJSON is the object of the report and of `take --json`; nil if open files were not recorded.
func FilesJSON(t *kcdata.LinuxFilesTaken) show.Object {
	if t == nil {
		return nil
	}
	return show.Object{
		{"threads", t.Threads}, {"files", t.Files}, {"sockets", t.Sockets}, {"more", t.More}, {"closed", t.Closed}, {"unread", t.Unread}, {"opaque", t.Opaque},
		{"moved", t.Moved}, {"wanted", t.Wanted}, {"ends", t.Ends}, {"looked", t.Looked}, {"pass_ns", t.PassNs}, {"total_ns", t.TotalNs}, {"delay_ns", t.DelayNs},
		{"processes", t.Processes}, {"unsettled", t.Unsettled},
		{"sources", append([]string{}, model.FilesSources.Names(t.Sources)...)}, {"not_done", append([]string{}, model.FilesNotDone.Names(t.Flags)...)},
	}
}
