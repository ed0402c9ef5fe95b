package cli

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
)

// installed lists the files below dir.
func installed(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(file, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestInstall: make install writes what docs/install.md lists, for the given prefix, and make uninstall deletes all of it.
func TestInstall(t *testing.T) {
	root, dir := "../..", t.TempDir()
	run := func(target string) {
		t.Helper()
		c := exec.Command("make", "-s", "-o", "build", target, "PREFIX=/opt/w", "DESTDIR="+dir,
			"BIN="+filepath.Join(built, "bin", "warmpath"))
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	run("install")
	files := installed(t, dir)
	for _, want := range []string{"bin/warmpath", "lib/systemd/system/warmpath.service", "lib/systemd/system/warmpath.socket",
		"share/man/man1/warmpath.1", "share/man/man1/warmpath-serve.1", "share/bash-completion/completions/warmpath",
		"share/zsh/site-functions/_warmpath", "share/fish/vendor_completions.d/warmpath.fish",
		"share/doc/warmpath/warmpath.toml", "share/doc/warmpath/all-keys.toml"} {
		file := "/opt/w/" + want
		if info, err := os.Stat(dir + file); !slices.Contains(files, file) || err != nil || info.Size() == 0 {
			t.Errorf("%s is not installed, or empty: %v", file, err)
		}
		if strings.Contains(want, "-serve") {
			continue // one of many, which the page names by a pattern
		}
		if name := filepath.Base(want); !strings.Contains(read(t, root+"/docs/install.md"), strings.Replace(name, "warmpath.1", "warmpath*.1", 1)) {
			t.Errorf("docs/install.md does not list %s", name)
		}
	}
	if unit := read(t, dir+"/opt/w/lib/systemd/system/warmpath.service"); !strings.Contains(unit, "ExecStart=/opt/w/bin/warmpath serve ") {
		t.Errorf("the unit starts another program:\n%s", unit)
	}
	if complete := read(t, dir+"/opt/w/share/bash-completion/completions/warmpath"); !strings.Contains(complete, "__start_warmpath") {
		t.Errorf("no completion for bash: %.200s", complete)
	}
	other := filepath.Join(dir, "opt/w/bin/other")
	write(t, other, "x")
	run("uninstall")
	if left := installed(t, dir); !slices.Equal(left, []string{"/opt/w/bin/other"}) {
		t.Errorf("left after make uninstall: %v", left)
	}
}

// TestExampleOfTheUnits: the configuration that is installed as an example is valid, writes where the unit lets it, listens
// where the sockets do, and ends within the unit's time.
func TestExampleOfTheUnits(t *testing.T) {
	dir := t.TempDir() // in place of /var, where the unit makes these folders
	for _, folder := range []string{"log/warmpath", "lib/warmpath"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.ReplaceAll(read(t, "../../deploy/systemd/warmpath.toml"), "\"/var/", "\""+dir+"/")
	c, err := conf.Parse([]byte(text), "/etc/warmpath/warmpath.toml")
	if err != nil {
		t.Fatal(err)
	}
	unit, socket := read(t, "../../deploy/systemd/warmpath.service"), read(t, "../../deploy/systemd/warmpath.socket")
	for _, want := range []string{"TimeoutStopSec=60s\n", "LogsDirectory=warmpath\n", "StateDirectory=warmpath\n"} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit has no %s", want)
		}
	}
	if stop := c.Server.DrainDelay + c.Server.DrainTimeout; stop.Seconds() >= 60 {
		t.Errorf("drain_delay and drain_timeout are %s together, and the unit allows 60s", stop)
	}
	for file, folder := range map[string]string{c.Server.AccessLog: dir + "/log/warmpath", c.Server.StateFile: dir + "/lib/warmpath"} {
		if filepath.Dir(file) != folder {
			t.Errorf("%s is not below %s", file, folder)
		}
	}
	for _, address := range []string{strings.TrimPrefix(c.Server.Listen, ":"), c.Server.Admin} {
		if !strings.Contains(socket, "ListenStream="+address+"\n") {
			t.Errorf("the socket unit does not listen on %s", address)
		}
	}
}
