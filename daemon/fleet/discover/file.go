package discover

import (
	"log/slog"
	"os"
	"slices"
	"sync"
)

// equaler is a worker as the sources describe it. Lists of them are compared.
type equaler[W any] interface{ Equal(W) bool }

// fileSource is the workers of a file.
type fileSource[W equaler[W]] struct {
	log    *slog.Logger
	format Format[W]

	reading sync.Mutex // one reader at a time, or an older reading could replace a newer one

	mu      sync.Mutex // guards all below
	path    string     // "" = no file
	refused error      // why it was not read the last time
	workers []W
}

// follow replaces the file. It drops the workers of the previous file.
func (f *fileSource[W]) follow(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if path != f.path {
		f.path, f.workers, f.refused = path, nil, nil
	}
}

func (f *fileSource[W]) paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return nil
	}
	return []string{f.path}
}

// last returns the workers as read last.
func (f *fileSource[W]) last() []W {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.workers
}

// why returns why the file gives no workers now: what is wrong with it, or that it is away.
func (f *fileSource[W]) why() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return nil
	}
	if _, err := os.Stat(f.path); err != nil {
		return err
	}
	return f.refused
}

// read loads the file. A file that is wrong or away changes nothing.
func (f *fileSource[W]) read() {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.mu.Lock()
	path := f.path
	f.mu.Unlock()
	if path == "" {
		return
	}
	workers, err := f.format.ReadFile(path)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = err
	if err != nil {
		f.log.Error("workers_file refused: the workers it gave before stay", "file", path, "error", err)
		return
	}
	if path != f.path || slices.EqualFunc(workers, f.workers, W.Equal) {
		return
	}
	f.workers = workers
	f.log.Info("workers_file read", "file", path, "workers", len(workers))
}
