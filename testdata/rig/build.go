package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Root returns the repository's folder, at or above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "daemon", "warmpath", "main.go")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("rig: the working directory is outside of the repository")
		}
		dir = filepath.Dir(dir)
	}
}

// Build returns the absolute path of the daemon: bin if it is not empty, or else one that it builds in dir.
func Build(ctx context.Context, dir, bin string) (string, error) {
	if bin != "" {
		return filepath.Abs(bin)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	if m, _ := filepath.Glob(filepath.Join(root, "plugins", "builtin", "*.wasm.zst")); len(m) == 0 {
		return "", errors.New("rig: plugins/builtin has no module: run `make modules` first")
	}
	bin = filepath.Join(dir, "warmpath")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "grpcnotrace", "-buildvcs=false", "-o", bin,
		"./daemon/warmpath")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("rig: go build: %w\n%s", err, out)
	}
	return bin, nil
}
