package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// keepers returns how many strategies are alive in this process: each has one goroutine.
func keepers() int {
	b := make([]byte, 16<<20)
	return strings.Count(string(b[:runtime.Stack(b, true)]), "host.(*Strategy).keep(")
}

// TestAPoolThatCannotBeMade: a reload fails at a new pool, whose key was removed after the file was checked. None of the
// strategies that it has loaded stays: those of the pool itself, of a new pool before it, and of the pool that serves. The
// access log is that of before.
func TestAPoolThatCannotBeMade(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{})
	settings := strings.Replace(settings("prefixaware", f.URLs()[0]), `"*"`, `"sim"`, 1)
	access := filepath.Join(t.TempDir(), "access.log")
	with := func(log string) string { return withServer(settings, fmt.Sprintf("access_log = %q", log)) }
	r := start(t, with(access), 1)
	before := keepers()
	key := filepath.Join(filepath.Dir(r.file), "key")
	write(t, key, "worker-key")
	var more strings.Builder
	addPool(&more, "second", "prefixaware", "b", f.URLs()[1])
	addPool(&more, "third", "prefixaware", "c", f.URLs()[2])
	third := strings.Replace(more.String(), `name = "third"`, "name = \"third\"\nworker_key_file = \"key\"", 1)
	write(t, r.file, with(access+".other")+third)
	c, err := conf.Load(r.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	r.reload.Lock()
	err = r.apply(c)
	r.reload.Unlock()
	if err == nil || !strings.Contains(err.Error(), "third") {
		t.Fatalf("error %v; want one that names the pool", err)
	}
	eventually(t, "the loaded strategies are closed", func() bool { return keepers() == before })
	if s := r.do("POST", "/v1/completions", short); s.status != 200 {
		t.Errorf("%d; want 200 by the pool before", s.status)
	}
	eventually(t, "a line in the access log before", func() bool { return len(logged(t, access)) == 1 })
}
