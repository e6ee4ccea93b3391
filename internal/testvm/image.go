package testvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"stackshot/internal/testvm/wire"
	"stackshot/internal/userlab"
)

// Initrd writes the initramfs of a test's guest: for Run, and for a test that
// drives its guest itself.
func (b *Builder) Initrd(ctx context.Context, t *Test, to string) error {
	arch := t.Guest.Kernel.Arch
	e, err := emulatorOf(arch)
	if err != nil {
		return err
	}
	m := image{repo: b.Repo, more: map[string]string{}, job: t.job(e)}
	if m.init, err = b.Program(ctx, "internal/testvm/cmd/vminit", arch); err != nil {
		return err
	}
	if m.program, err = b.TestBinary(ctx, t.Package, arch); err != nil {
		return err
	}
	if t.Package == commandPackage {
		if m.more["lib/stackshot"], err = b.Program(ctx, commandPackage, arch); err != nil {
			return err
		}
	}
	if err := m.addModules(&t.Guest.Kernel, t.Guest.Modules); err != nil {
		return err
	}
	if t.Guest.Capture != nil {
		if err := b.addCapture(ctx, &m, t.Guest.Kernel, t.Guest.Capture, to+".capture"); err != nil {
			return err
		}
		defer os.Remove(to + ".capture")
	}
	if slices.Contains(labPackages, t.Package) {
		if err := b.addLab(&m, arch); err != nil {
			return err
		}
	}
	return m.write(ctx, to)
}

// addModules packs modules for the first process to load.
func (m *image) addModules(k *Kernel, wanted []string) error {
	if len(wanted) == 0 {
		return nil
	}
	s, err := k.modules(wanted)
	if err != nil {
		return err
	}
	m.text, m.job.Setup.Modules = s.image, s.load
	return nil
}

// addLab packs the C programs of package userlab.
func (b *Builder) addLab(m *image, arch string) error {
	programs, err := b.lab(arch)
	if err != nil {
		return err
	}
	m.job.Env = append(m.job.Env, userlab.PrebuiltVar+"="+wire.LabDir)
	for _, path := range programs {
		m.more[filepath.Join(wire.LabDir[1:], filepath.Base(path))] = path
	}
	return nil
}

// image is the initramfs of one run: the first process, the program, and every
// file of the repository where the program expects it.
type image struct {
	job     *wire.Job
	init    string            // path of the built vminit
	repo    string            // empty: without the repository's files
	program string            // path; in the guest it is job.Args[0]
	more    map[string]string // name in the guest: path here
	text    map[string][]byte // name in the guest: content
}

// applets are the names that vminit answers to besides init.
var applets = []string{"sleep", "true", "go"}

// write makes the archive.
func (m *image) write(ctx context.Context, to string) (err error) {
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	a := newArchive(f)
	for _, d := range []string{"dev", "proc", "sys", "tmp", "run", "bin", "etc", "root"} {
		a.dir(d)
	}
	// Until devtmpfs is mounted the kernel needs these two.
	a.device("dev/console", 0o600, 5, 1)
	a.device("dev/null", 0o666, 1, 3)
	job, err := json.Marshal(m.job)
	if err != nil {
		return err
	}
	a.file(wire.JobFile[1:], 0o644, job)
	files := map[string]string{"init": m.init, m.job.Args[0][1:]: m.program}
	for name, path := range m.more {
		files[name] = path
	}
	for name, text := range m.text {
		a.file(name, 0o644, text)
	}
	for name, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		a.file(name, 0o755, data)
	}
	for _, name := range applets {
		a.link("bin/"+name, "/init")
	}
	if m.repo != "" {
		if err := m.addRepo(ctx, a); err != nil {
			return err
		}
	}
	return a.close()
}

// addRepo packs what git would: tests read sources, documents and fixtures by
// relative paths, and the whole is smaller than one test binary.
func (m *image) addRepo(ctx context.Context, a *archive) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = m.repo
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files in %s: %w", m.repo, err)
	}
	names := strings.Split(string(bytes.TrimRight(list, "\x00")), "\x00")
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		data, err := os.ReadFile(filepath.Join(m.repo, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed and not yet committed
		}
		if err != nil {
			return err
		}
		a.file(filepath.Join(wire.RepoDir[1:], name), 0o644, data)
	}
	return nil
}
