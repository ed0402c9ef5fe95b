package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemdFiles has systemd judge the unit and the socket; the binary's place is the test's.
func TestSystemdFiles(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: .ci/run is to install it", err)
		}
		t.Skip("NOT TESTED: there is no systemd-analyze; Debian's package systemd has it")
	}
	dir := t.TempDir()
	args := []string{"verify"}
	for _, name := range []string{"warmpath.service", "warmpath.socket"} {
		text := read(t, filepath.Join("../../docs/systemd", name))
		text = strings.ReplaceAll(text, "/usr/local/bin/warmpath", filepath.Join(built, "bin", "warmpath"))
		write(t, filepath.Join(dir, name), text)
		args = append(args, filepath.Join(dir, name))
	}
	if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// Of 10, where 10 is a service that may do all; a unit without a line of hardening has 9.6.
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=20", args[1]).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: exposure is above 2.0: %v\n%s", err, out)
	}
}
