package snapshot

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// A mapper is this test binary once more, as a process whose mappings are known.
// It ends with its standard input, so never outlives the test.
const mapperEnv = "STACKSHOT_TEST_MAPPER"

const page = 4096

// runMapper is called by TestMain. Arguments: what to do, the file to map, how many.
func runMapper() {
	what := os.Getenv(mapperEnv)
	if what == "" {
		return
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	n, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = mapper(what, os.Args[1], n)
	}
	fmt.Println("error", err)
	os.Exit(1)
}

// mapper reserves room for 2n pages and says where; then it maps.
func mapper(what, path string, n int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	base, err := rawMap(0, 2*n*page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1, 0)
	if err != nil {
		return err
	}
	switch what {
	case "still", "dense":
		for i := range n {
			if err := mapStill(base, f, i, map[string]int{"still": 8, "dense": 2}[what]); err != nil {
				return err
			}
		}
	case "split":
		if _, err := rawMap(base, n*page, unix.PROT_READ, unix.MAP_FIXED|unix.MAP_PRIVATE, int(f.Fd()), 0); err != nil {
			return err
		}
	}
	fmt.Println("ready", base)
	for {
		switch what {
		case "still", "dense":
			select {}
		case "churn":
			err = mapAndUnmap(base, f, rand.IntN(n))
		case "split":
			err = changePart(base, n)
		}
		if err != nil {
			return err
		}
	}
}

// mapStill gives every fourth page a file behind it, and lets no two neighbours be
// alike; every page that is 0 modulo executable is that.
func mapStill(base uintptr, f *os.File, i, executable int) error {
	prot := []int{unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE}[i%2]
	if i%executable == 0 {
		prot = unix.PROT_READ | unix.PROT_EXEC
	}
	at := base + uintptr(i)*page
	if i%4 == 0 {
		_, err := rawMap(at, page, prot, unix.MAP_FIXED|unix.MAP_PRIVATE, int(f.Fd()), int64(i%64)*page)
		return err
	}
	_, err := rawMap(at, page, prot, unix.MAP_FIXED|unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1, 0)
	return err
}

// mapAndUnmap maps page i of the file at page 2i of the room, and takes it away: what
// kept the room comes back, else the runtime's own memory may lie there next time.
func mapAndUnmap(base uintptr, f *os.File, i int) error {
	at := base + uintptr(2*i)*page
	if _, err := rawMap(at, page, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_FIXED|unix.MAP_PRIVATE, int(f.Fd()), int64(i)*page); err != nil {
		return err
	}
	_, err := rawMap(at, page, unix.PROT_NONE, unix.MAP_FIXED|unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1, 0)
	return err
}

// changePart makes some pages of the file's mapping executable, or no more: the
// kernel splits and joins.
func changePart(base uintptr, n int) error {
	from := rand.IntN(n)
	pages := 1 + rand.IntN(n-from)
	prot := unix.PROT_READ | unix.PROT_EXEC*rand.IntN(2)
	if _, _, errno := unix.Syscall(unix.SYS_MPROTECT, base+uintptr(from)*page, uintptr(pages)*page, uintptr(prot)); errno != 0 {
		return errno
	}
	return nil
}

func rawMap(at uintptr, size, prot, flags, fd int, off int64) (uintptr, error) {
	r, _, errno := unix.Syscall6(unix.SYS_MMAP, at, uintptr(size), uintptr(prot), uintptr(flags), uintptr(fd), uintptr(off))
	if errno != 0 {
		return 0, errno
	}
	return r, nil
}

// mapped is a mapper at work.
type mapped struct {
	pid  int
	base uint64
	file unix.Stat_t
	path string
}

// startMapper starts one and waits until its mappings stand.
func startMapper(t testing.TB, what string, n int) *mapped {
	t.Helper()
	m := &mapped{path: filepath.Join(t.TempDir(), "a", "b", "c", "d", "mapped file")}
	if err := os.MkdirAll(filepath.Dir(m.path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.path, make([]byte, n*page+64*page), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Stat(m.path, &m.file); err != nil {
		t.Fatal(err)
	}
	m.pid = startChild(t, again([]string{m.path, fmt.Sprint(n)}, mapperEnv+"="+what), "ready %d", &m.base).pid
	return m
}
