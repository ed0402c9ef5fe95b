package exchange

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestTheSameWorkerExcusesNobody: a worker that breaks a request's connection, and breaks it again when it is asked once
// more, has failed it twice. Only another process that fails it alike takes the blame from it.
func TestTheSameWorkerExcusesNobody(t *testing.T) {
	f := func(what string, ranks int, other string, want worker.Standing) {
		t.Helper()
		s := newScene(t, []string{""}, []string{other}, []string{other})
		for _, x := range s.pool.Workers.Stats(time.Now()) {
			id := s.prober.ids[x.URL]
			switch {
			case x.ID == "w0":
				s.pool.Workers.Counted(id, ranks, time.Now())
			case other == whole(200, good):
				s.pool.Workers.Listed(id, []string{"other"}, nil)
			}
		}
		for i := range 8 {
			s.ask(inbound("POST", "/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}]}`, i)))
		}
		if got := s.pool.Workers.Stats(time.Now())[0].State; got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("alone with the model", 1, whole(200, good), worker.Ejected)
	f("two ranks of one process", 2, whole(200, good), worker.Ejected)
	f("the others break it too", 1, "", worker.Ready)
}
