package arm

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"stackshot/internal/engine"
	"stackshot/internal/panicregion"
)

// What is made room for, in bytes. A panic's walk has the mappings of every process too, since no
// /proc answers later.
const (
	threadRoom  = 1331       // a thread: its records and its kernel stack
	userRoom    = 256 + 1536 // its user side: chain, and bytes of the stack
	processRoom = 1 << 10    // a process: its own records
	mapsRoom    = 4 << 10    // its mappings

	headRoom = 2       // threads and processes may become so many times as many
	least    = 4 << 20 // of the default
)

// crowd is how many processes and threads the machine has.
type crowd struct{ processes, threads int }

// count reads /proc. Threads are those of /proc/loadavg: no process is opened.
func count() (c crowd, err error) {
	d, err := os.Open("/proc")
	if err != nil {
		return c, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return c, err
	}
	for _, n := range names {
		if n[0] >= '1' && n[0] <= '9' {
			c.processes++
		}
	}
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return c, err
	}
	c.threads, err = threadsOf(string(text))
	return c, err
}

// threadsOf reads the fourth field of /proc/loadavg: running/all.
func threadsOf(loadavg string) (int, error) {
	fields := strings.Fields(loadavg)
	if len(fields) < 4 {
		return 0, fmt.Errorf("/proc/loadavg: %.80q", loadavg)
	}
	_, all, _ := strings.Cut(fields[3], "/")
	n, err := strconv.Atoi(all)
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg: %w", err)
	}
	return n, nil
}

// perThread is the room for one thread and its share of its process, bytes.
func (o *Options) perThread(c crowd) int {
	thread, process := threadRoom, processRoom
	if !o.Redact {
		process += mapsRoom
	}
	if o.UserStacks != 0 && !o.Redact {
		thread += userRoom
	}
	return thread + process*c.processes/max(c.threads, 1)
}

// records is how many bytes the records get, whole pages of the region's layout; for is how many
// threads that is made for.
func (o *Options) records(c crowd) (bytes, threads int) {
	bytes = int(o.Buffer)
	if bytes == 0 {
		bytes = int(min(max(int64(c.threads)*int64(o.perThread(c))*headRoom, least), engine.MaxBuffer()))
	}
	bytes = (bytes + panicregion.PageSize - 1) &^ (panicregion.PageSize - 1)
	return bytes, bytes / o.perThread(c)
}
