package exchange

import (
	"log/slog"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/identity"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// once is a tally that calls at when the first request has been placed, before a worker gets it.
type once struct {
	*tally
	at func()
}

func (o *once) Picked(s *message.Seen) {
	o.tally.Picked(s)
	if o.at != nil {
		o.at()
		o.at = nil
	}
}

// A worker gets another address under its id while a request is on its way to it, as a pod of a StatefulSet does. The
// request waits for the first health check of the one that has come, as one does that comes then. That holds too for one
// that no other worker may serve: by its session, which ends with its worker, or by the strategy.
func TestAWorkerIsReplacedUnderItsID(t *testing.T) {
	checks := map[string]func(p *worker.Pool, id uint64){
		"its check is good": func(p *worker.Pool, id uint64) { p.Healthy(id, time.Now()) },
		"its check fails":   func(p *worker.Pool, id uint64) { p.Dead(id, "refused", time.Now()) },
	}
	kinds := map[string]func(s *scene){
		"any": func(*scene) {},
		"of a session": func(s *scene) {
			s.epoch.Sessions = epoch.Naming{Identity: identity.New([]string{"X-Session-Id"}), EndWithWorker: true, Always: true}
			if a := s.chat("X-Session-Id", "mine"); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.body)
			}
		},
		"of a strategy that names it alone": func(s *scene) {
			s.pool.Strategy.Replace(host.Native("only", 0, func(*abi.Header, []abi.Row, []uint32) uint64 {
				return abi.Pack(0, 0, abi.FlagOnly)
			}))
		},
	}
	for kind, prepare := range kinds {
		for name, check := range checks {
			t.Run(kind+", "+name, func(t *testing.T) {
				old := whole(200, `{"id":"old"}`)
				s := newScene(t, []string{old, old})
				prepare(s)
				url := scripted(t, []string{whole(200, `{"id":"new"}`)})
				client, err := upstream.New(upstream.Config{URL: url})
				if err != nil {
					t.Fatal(err)
				}
				swap := func() {
					s.pool.Workers.Update([]worker.Spec{{ID: "w0", URL: url}}, time.Now())
					s.pool.Clients.Set(map[string]*upstream.Client{url: client})
					time.AfterFunc(50*time.Millisecond, func() { check(s.pool.Workers, s.prober.ids[url]) })
				}
				s.Server = New(Config{Log: slog.New(slog.NewTextHandler(s.log, nil)), Meter: &once{tally: s.counted, at: swap}})
				a := s.chat("X-Session-Id", "mine")
				if good := name == "its check is good"; good && (a.status != 200 || a.body != `{"id":"new"}`) ||
					!good && a.status != 503 {
					t.Errorf("%d %s", a.status, a.body)
				}
			})
		}
	}
}
