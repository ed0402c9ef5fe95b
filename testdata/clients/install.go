package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// install puts a language's packages under .cache/clients, unless they are there, and tells the command that runs a
// script and what its environment needs.
func install(ctx context.Context, root, language string) (command string, env []string, err error) {
	dir := filepath.Join(root, ".cache", "clients")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, err
	}
	if language == "python" {
		python := filepath.Join(dir, "venv", "bin", "python")
		err := once(ctx, root, dir, "requirements.txt", [][]string{
			{"python3", "-m", "venv", "--clear", "venv"},
			{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"},
		})
		return python, []string{"PYTHONDONTWRITEBYTECODE=1"}, err
	}
	err = once(ctx, root, dir, "package.json", [][]string{
		{"npm", "install", "--silent", "--no-package-lock", "--no-audit", "--no-fund"},
	})
	return "node", []string{"WARMPATH_NODE=" + dir}, err
}

// installAgents puts the coding agents under .cache/clients/agents, unless they are there: a gigabyte.
func installAgents(ctx context.Context, root string) error {
	dir := filepath.Join(root, ".cache", "clients")
	if err := os.MkdirAll(filepath.Join(dir, "agents"), 0o755); err != nil {
		return err
	}
	return once(ctx, root, dir, "agents/package.json", [][]string{
		{"npm", "install", "--silent", "--no-package-lock", "--no-audit", "--no-fund", "--prefix", "agents"},
	})
}

// once runs the commands in dir, beside a copy of the list of packages, if the list is not the one they last ran for.
func once(ctx context.Context, root, dir, list string, commands [][]string) error {
	wanted, err := os.ReadFile(filepath.Join(root, "testdata", "clients", list))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(wanted)
	stamp := filepath.Join(dir, list+".installed")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == hex.EncodeToString(sum[:]) {
		return nil
	}
	if err := os.WriteFile(filepath.Join(dir, list), wanted, 0o644); err != nil {
		return err
	}
	for _, c := range commands {
		cmd := exec.CommandContext(ctx, c[0], c[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s; install python3 with venv, node and npm", strings.Join(c[:2], " "), err, last(out))
		}
	}
	return os.WriteFile(stamp, []byte(hex.EncodeToString(sum[:])), 0o644)
}

// last is the end of a command's output.
func last(out []byte) string {
	s := strings.TrimSpace(string(out))
	return s[max(0, len(s)-300):]
}
