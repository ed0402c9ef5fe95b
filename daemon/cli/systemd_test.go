package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSystemdFiles makes systemd check the unit and the socket, with the binary in the test's folder.
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
		text := read(t, filepath.Join("../../deploy/systemd", name))
		text = strings.ReplaceAll(text, "/usr/local/bin/warmpath", filepath.Join(built, "bin", "warmpath"))
		if name == "warmpath.service" {
			dropIn, _ := underSystemd(t)
			text += dropIn // its lines belong to the unit
		}
		write(t, filepath.Join(dir, name), text)
		args = append(args, filepath.Join(dir, name))
	}
	if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// The scale ends at 10, a service without any restriction; a unit without a line of hardening has 9.6.
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=20", args[1]).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze security: exposure is above 2.0: %v\n%s", err, out)
	}
}

// underSystemd returns the section of docs/security.md about systemd: its drop-in, and the rest.
func underSystemd(t *testing.T) (dropIn, text string) {
	t.Helper()
	_, section, _ := strings.Cut(read(t, "../../docs/security.md"), "### Under systemd\n")
	_, dropIn, _ = strings.Cut(section, "```ini\n")
	dropIn, text, _ = strings.Cut(dropIn, "```\n")
	text, _, ok := strings.Cut(text, "\n## ")
	if !ok {
		t.Fatal("docs/security.md has no drop-in under systemd")
	}
	return dropIn, text
}

// TestUnitHasRoomForItsFiles: the unit lets the service write every file that docs/security.md names under systemd, or
// the drop-in passes it in. The names are checked even without systemd.
func TestUnitHasRoomForItsFiles(t *testing.T) {
	unit := read(t, "../../deploy/systemd/warmpath.service")
	dropIn, text := underSystemd(t)
	rooms := map[string]string{"/var/log/warmpath/": "\nLogsDirectory=warmpath\n", "/var/lib/warmpath/": "\nStateDirectory=warmpath\n"}
	files := regexp.MustCompile("\\| `(/.*/)(.*)` \\|").FindAllStringSubmatch(text, -1)
	if len(files) != 5 {
		t.Fatalf("%d files; want the token, the log, the state and two keys", len(files))
	}
	for _, f := range files {
		switch folder, name := f[1], f[2]; {
		case folder == "/run/credentials/warmpath.service/" && strings.Contains(dropIn, "\nLoadCredential="+name+":/etc/warmpath/"+name+"\n"):
		case rooms[folder] != "" && strings.Contains(unit, rooms[folder]):
		default:
			t.Errorf("%s%s: neither the unit nor the drop-in has it", folder, name)
		}
	}
}
