package symbol

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"stackshot/internal/elffile"
)

const (
	// maxDownload is the largest debug file to fetch, bytes.
	maxDownload = 1 << 30
	// defaultFetch is the time limit for one file.
	defaultFetch = 5 * time.Second
)

// Debuginfod fetches split debug files by build-id from debuginfod servers, and keeps
// them in the directory that other clients of the protocol use too. Safe to call
// concurrently.
type Debuginfod struct {
	urls   []string      // constant
	dir    string        // constant
	limit  time.Duration // for one file; constant
	client *http.Client

	absent sync.Map // build-id in hex -> error, of those that were not got
}

// DebuginfodFromEnv makes a client for the servers of DEBUGINFOD_URLS, with the directory
// DEBUGINFOD_CACHE_PATH or one below the user's cache directory. nil if the variable
// names no server.
func DebuginfodFromEnv() (*Debuginfod, error) {
	urls := strings.Fields(os.Getenv("DEBUGINFOD_URLS"))
	if len(urls) == 0 {
		return nil, nil
	}
	dir := os.Getenv("DEBUGINFOD_CACHE_PATH")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("debuginfod: %w", err)
		}
		dir = filepath.Join(cache, "debuginfod_client")
	}
	return NewDebuginfod(urls, dir, defaultFetch)
}

// NewDebuginfod makes one. limit is for one file.
func NewDebuginfod(urls []string, dir string, limit time.Duration) (*Debuginfod, error) {
	d := &Debuginfod{dir: dir, limit: limit, client: &http.Client{}}
	for _, s := range urls {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("debuginfod: %q is no http or https address", s)
		}
		d.urls = append(d.urls, strings.TrimRight(s, "/"))
	}
	return d, nil
}

// Fetch returns the path of the debug file of a build. The error is fs.ErrNotExist if
// no server has the file. Fetch does not ask again for a file that it failed to get.
func (d *Debuginfod) Fetch(ctx context.Context, build []byte) (string, error) {
	id := hex.EncodeToString(build)
	path := filepath.Join(d.dir, id, "debuginfo")
	if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() && st.Size() > 0 {
		return path, nil
	}
	if err, ok := d.absent.Load(id); ok {
		return "", err.(error)
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	err := fs.ErrNotExist
	for _, base := range d.urls {
		got := d.get(ctx, base+"/buildid/"+id+"/debuginfo", path)
		if got == nil {
			return path, nil
		}
		if !errors.Is(got, fs.ErrNotExist) {
			err = got
		}
	}
	d.absent.Store(id, err)
	return "", err
}

func (d *Debuginfod) get(ctx context.Context, addr, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, addr, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "stackshot")
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", addr, fs.ErrNotExist)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %s", addr, resp.Status)
	case resp.ContentLength > maxDownload:
		return fmt.Errorf("%s: %d bytes: %w", addr, resp.ContentLength, elffile.ErrTooBig)
	}
	if err := save(resp.Body, path); err != nil {
		return fmt.Errorf("%s: %w", addr, err)
	}
	return nil
}

// save writes a file that appears under its name only when it is complete.
func save(r io.Reader, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	n, err := io.Copy(f, io.LimitReader(r, maxDownload+1))
	if err == nil && n > maxDownload {
		err = elffile.ErrTooBig
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
