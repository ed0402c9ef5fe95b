package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// TestRoomFollowsTheWorkers: descriptors are kept back for workers that a reload or workers_file brings, too.
func TestRoomFollowsTheWorkers(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { openFiles = listen.OpenFiles }) // after the daemon has stopped
	openFiles = func() (int, bool) { return 1000, true }
	file := filepath.Join(t.TempDir(), "workers.toml")
	write(t, file, "workers = []\n")
	toml := strings.Replace(settings("roundrobin", sims(t, 1, vllmsim.Config{}).URLs()[0]), "[[pools]]\n", fmt.Sprintf("[[pools]]\nworkers_file = %q\n", file), 1)
	r := start(t, toml, 1)
	first, _ := listen.Room(1000, listen.Kept{Workers: []int{1}})
	if got := r.front.Stats().MaxConns; got != first {
		t.Errorf("one worker: %d connections; want %d", got, first)
	}
	var more strings.Builder
	for i := range 50 {
		fmt.Fprintf(&more, "[[workers]]\nurl = \"http://127.0.0.1:%d\"\nid = \"w-%d\"\n", i+1, i)
	}
	write(t, file, more.String())
	want, _ := listen.Room(1000, listen.Kept{Workers: []int{51}})
	eventually(t, fmt.Sprintf("room for %d clients in place of %d", want, first), func() bool { return r.front.Stats().MaxConns == want })
}
