package snapshot

import (
	"bytes"
	"encoding/gob"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"stackshot/internal/capture"
	"stackshot/internal/testneed"
	"stackshot/internal/testtask"
)

// rawEnv names the raw capture that a child of TestRawInAnotherProcess collates; the
// file goes beside it.
const rawEnv = "STACKSHOT_TEST_RAW"

// A raw capture is plain data: written down, read in another process and collated
// there it gives the same file, to the byte.
func TestRawInAnotherProcess(t *testing.T) {
	testneed.Live(t)
	testneed.Slow(t)
	if path := os.Getenv(rawEnv); path != "" {
		collateFrom(t, path)
		return
	}
	testneed.Root(t)
	f := testtask.Start(t, testtask.ManyThreads(20), testtask.Sleeping, testtask.Zombie, testtask.InPidNS)
	for _, name := range engines {
		t.Run(name, func(t *testing.T) {
			s := session(t, Options{Engine: name})
			raw := rawOf(t, s, pidsOf(f))
			path := filepath.Join(t.TempDir(), "raw")
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := gob.NewEncoder(file).Encode(raw); err != nil { // before collation: that changes its bytes
				t.Fatal(err)
			}
			file.Close()
			var here bytes.Buffer
			if _, err := s.collate(&here, raw); err != nil {
				t.Fatal(err)
			}
			child := exec.Command(os.Args[0], "-test.run=^TestRawInAnotherProcess$")
			child.Env = append(os.Environ(), rawEnv+"="+path)
			if out, err := child.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			there, err := os.ReadFile(path + ".kcdata")
			if err != nil {
				t.Fatal(err)
			}
			if snap, err := parse(t, there); err != nil || len(snap.Tasks) != len(pidsOf(f)) {
				t.Fatalf("%v, %+v", err, snap)
			}
			if !bytes.Equal(here.Bytes(), there) {
				t.Errorf("collated here %d bytes, there %d, and they differ", here.Len(), len(there))
			}
		})
	}
}

// rawOf is a capture that is complete and not collated.
func rawOf(t *testing.T, s *Session, pids []int) *capture.Raw {
	t.Helper()
	sc, err := s.scope(Request{Pids: pids})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.tries(t.Context(), sc)
	if err != nil {
		t.Fatal(err)
	}
	s.complete(raw, sc)
	return raw
}

func collateFrom(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw := new(capture.Raw)
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(raw); err != nil {
		t.Fatal(err)
	}
	s := session(t, Options{Engine: EngineProcfs}) // for what it knows of the machine
	var file bytes.Buffer
	if _, err := s.collate(&file, raw); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".kcdata", file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
