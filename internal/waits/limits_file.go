package waits

import "stackshot/kcdata"

// fileLimits are those of what is known of open files.
func fileLimits(s *kcdata.Snapshot) (out []string) {
	t := s.FilesTaken
	if t == nil {
		if s.WaitTaken != nil && s.Engine != "procfs" {
			out = append(out, "open files were not recorded: who has the other ends of pipes, sockets and other files is not known")
		}
		return out
	}
	has := func(bits uint32) bool { return t.Sources&bits != 0 }
	not := func(bits uint32) bool { return t.Flags&bits != 0 }
	for _, l := range []struct {
		when bool
		text string
	}{
		{!has(kcdata.FilesHasTable), "descriptors could not be followed: at which open files threads wait is not known"},
		{has(kcdata.FilesHasTable) && !has(kcdata.FilesHasUnix), "this kernel does not tell what unix sockets lead to (it has them as a module without type information): who has their other ends is not known"},
		{has(kcdata.FilesHasTable) && !has(kcdata.FilesHasEpoll), "this kernel does not tell the sets of epolls: at what threads in epoll_wait wait is not known"},
		{has(kcdata.FilesHasTable) && !has(kcdata.FilesHasTTY), "this kernel does not tell the other sides of terminals"},
		{!has(kcdata.FilesHasPass | kcdata.FilesHasProc), "who has the other ends of open files was not looked for"},
		{!has(kcdata.FilesHasPass) && has(kcdata.FilesHasProc), "who has the other ends of open files is from /proc, which does not tell all of them"},
		{not(kcdata.FilesNoPass), "the pass over all open files failed"},
		{not(kcdata.FilesTimeUp), "its time was up before all open files were looked at: who has the other ends may be missing"},
		{not(kcdata.FilesTooMany), "there are more ends of open files than the file has"},
		{not(kcdata.FilesTooWanted), "threads wait at more open files than were looked for"},
		{not(kcdata.FilesHung), "a read of /proc or /sys did not end in time"},
		{not(kcdata.FilesNoLocks), "/proc/locks could not be read: holders of file locks may be missing"},
		{!has(kcdata.FilesHasMounts) || not(kcdata.FilesNoMounts), "mounts could not be read: file systems have no names"},
		{t.Unsettled > 0, "the descriptors of " + count(t.Unsettled, "process", "processes") + " could not be looked at"},
		{t.More > 0, count(t.More, "descriptor beyond the first 16 of a call was", "descriptors beyond the first 16 of a call were") + " not recorded"},
		{t.Unread > 0, count(t.Unread, "open file", "open files") + " could not be read in the window"},
		{t.Moved > 0, count(t.Moved, "thread", "threads") + " went on before the other ends of their files were looked for: for these nobody is named"},
	} {
		if l.when {
			out = append(out, l.text)
		}
	}
	return out
}
