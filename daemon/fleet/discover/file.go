package discover

import (
	"log/slog"
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
	workers []W
}

// follow replaces the file. It drops the workers of the previous file.
func (f *fileSource[W]) follow(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if path != f.path {
		f.path = path
		f.workers = nil
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
	if err != nil {
		f.log.Error("workers_file refused: the workers it gave before stay", "file", path, "error", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if path != f.path || slices.EqualFunc(workers, f.workers, W.Equal) {
		return
	}
	f.workers = workers
	f.log.Info("workers_file read", "file", path, "workers", len(workers))
}
