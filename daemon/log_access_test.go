package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestRequestsDoNotHearOfTheAccessLog: full disk, no folder, and back, through the socket.
func TestRequestsDoNotHearOfTheAccessLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "access.log")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, withServer(settings("prefixaware", f.URLs()...), fmt.Sprintf("access_log = %q", path)), 1)
	ask := func() {
		t.Helper()
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`); s.status != 200 {
			t.Fatalf("%d %s", s.status, s.body)
		}
	}
	lines := func() bool {
		ask()
		b, _ := os.ReadFile(path)
		return strings.Contains(string(b), `"status":200`)
	}
	ask()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is written when the disk has room", lines)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	ask()
	if err := r.Reload(); err == nil {
		t.Error("a reload took a log up that cannot be written")
	}
	ask()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is written when its folder is there", lines)
}
