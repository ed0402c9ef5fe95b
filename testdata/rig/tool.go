package rig

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// Main runs a tool until SIGINT or SIGTERM and ends the process: with 0 if all was well, with 1 if it was not or could
// not be tried. If dir is empty, the tool has a temporary folder, which is deleted at the end.
func Main(name, dir string, run func(ctx context.Context, dir string) (ok bool, err error)) {
	ok, err := within(name, dir, run)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func within(name, dir string, run func(context.Context, string) (bool, error)) (ok bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if dir == "" {
		dir, err = os.MkdirTemp("", "warmpath-"+name)
		if err != nil {
			return false, err
		}
		defer os.RemoveAll(dir)
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	return run(ctx, dir)
}
