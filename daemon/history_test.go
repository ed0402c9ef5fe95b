package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// routers starts n daemons over the same workers and one Redis.
func routers(t *testing.T, n int, redis, strategy string, f vllmsim.Fleet) (all []*running) {
	t.Helper()
	for i := range n {
		all = append(all, startRouter(t, i, redis, strategy, f))
	}
	for i, r := range all {
		eventually(t, fmt.Sprintf("router %d hears the others", i), func() bool { return r.hears() == n-1 })
	}
	return all
}

func startRouter(t *testing.T, i int, redis, strategy string, f vllmsim.Fleet) *running {
	t.Helper()
	toml := settings(strategy, f.URLs()...) + fmt.Sprintf("[history]\nredis = %q\nname = \"router-%d\"\n", redis, i)
	return start(t, toml, len(f))
}

// hears is how many other routers the daemon hears.
func (r *running) hears() (n int) {
	for _, p := range r.peers.Stats().Pools {
		for _, o := range p.Routers {
			if o.Alive {
				n++
			}
		}
	}
	return n
}

// agree waits until all routers believe the same: who holds how much, and how many requests are in flight.
func agree(t *testing.T, all []*running, within time.Duration) {
	t.Helper()
	view := func(r *running) string {
		var b strings.Builder
		for _, p := range r.shown() {
			for _, s := range p.Workers.Stats(time.Now()) {
				fmt.Fprintf(&b, "%s: %d in flight, %d blocks; ", s.ID, s.InFlight+s.Theirs, p.Index.Worker(s.Slot).Blocks)
			}
		}
		return b.String()
	}
	var views []string
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		views = views[:0]
		same := true
		for _, r := range all {
			views = append(views, view(r))
			same = same && views[len(views)-1] == views[0]
		}
		if same {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: the routers agree; they believe\n%s", within, strings.Join(views, "\n"))
		}
	}
}

// chatOver sends the turns of a chat to routers in turn, and returns how many of its later turns followed the first.
func chatOver(t *testing.T, all []*running, name string, turns int) (followed int) {
	t.Helper()
	m := []chatMessage{{"system", strings.Repeat("You know "+name+". ", 60)}, {"user", "When is high water?"}}
	home := ""
	for turn := range turns {
		s := all[turn%len(all)].do("POST", "/v1/chat/completions", chatBody(turn%2 == 0, m), "X-Warmpath-Explain", "1")
		if s.status != 200 || s.err != nil {
			t.Fatalf("turn %d: %d %v %s", turn, s.status, s.err, s.body)
		}
		content, _ := s.text(t)
		w := s.header.Get("X-Warmpath-Worker")
		if turn > 0 && w == home {
			followed++
		}
		home = w
		m = append(m, chatMessage{"assistant", content}, chatMessage{"user", "And after that?"})
		time.Sleep(60 * time.Millisecond) // nobody types faster than others hear
	}
	return followed
}

// A chat whose turns come in at four routers stays at its worker, and all four know the same.
func TestRoutersShareTheirHistory(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	f := sims(t, 4, vllmsim.Config{})
	all := routers(t, 4, url, "prefixaware", f)
	for i := range 4 {
		if n := chatOver(t, all, fmt.Sprint("tides ", i), 8); n != 7 {
			t.Errorf("chat %d: %d of 7 turns followed", i, n)
		}
	}
	agree(t, all, 5*time.Second)
	for i, r := range all {
		p := r.peers.Stats().Pools[0]
		if p.Received.Gaps+p.Received.Foreign+p.Received.Unlinked+p.Received.Flooded != 0 || p.Told.Frames == 0 {
			t.Errorf("router %d: told %+v, heard %+v", i, p.Told, p.Received)
		}
	}
	late := startRouter(t, 9, url, "prefixaware", f) // one that starts knows it too
	agree(t, append(all, late), 5*time.Second)
}

// Without a Redis that answers, each router serves alone, and they agree when it is back.
func TestRoutersWithoutTheirRedis(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := sims(t, 4, vllmsim.Config{})
	all := routers(t, 2, redis.URL(), "prefixaware", f)
	chatOver(t, all, "before", 4)
	redis.Signal(syscall.SIGSTOP)
	chatOver(t, all[:1], "while it hangs", 4)
	chatOver(t, all[1:], "while it hangs too", 4)
	eventually(t, "the loss is known", func() bool { return !all[0].peers.Stats().Connected })
	redis.Signal(syscall.SIGCONT)
	agree(t, all, 5*time.Second)
}

// A session that one router binds, the others know at once: without asking Redis, and without one for sessions at all.
func TestRoutersShareTheirSessions(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t).URL()
	f := sims(t, 4, vllmsim.Config{})
	all := routers(t, 2, url, "session", f)
	body := `{"model":"sim","prompt":"x","max_tokens":1}`
	at := func(r *running, id string) string {
		t.Helper()
		s := r.do("POST", "/v1/completions", body, "X-Session-Id", id, "X-Warmpath-Explain", "1")
		if s.status != 200 {
			t.Fatal(s.status, s.body)
		}
		return s.header.Get("X-Warmpath-Worker")
	}
	known := func(r *running) (n int) {
		for _, kinds := range r.shown()[0].Sessions.Live(time.Now()) {
			for _, k := range kinds {
				n += k
			}
		}
		return n
	}
	homes := map[string]string{}
	for i := range 20 {
		id := fmt.Sprint("session-", i)
		homes[id] = at(all[0], id)
	}
	eventually(t, "the other router knows them unasked", func() bool { return known(all[1]) == 20 })
	all = append(all, startRouter(t, 2, url, "session", f))
	eventually(t, "so does one that starts", func() bool { return known(all[2]) == 20 })
	for id, home := range homes {
		for i, r := range all[1:] {
			if w := at(r, id); w != home {
				t.Errorf("%s: %s at router %d; want %s", id, w, i+1, home)
			}
		}
	}
}

// TestADrainTravels: a worker that is drained at one router gets nothing from the other, and both say so; the other
// names who has requests there.
func TestADrainTravels(t *testing.T) {
	t.Parallel()
	f := sims(t, 2, vllmsim.Config{})
	all := routers(t, 2, redistest.Start(t).URL(), "roundrobin", f)
	worker := all[0].shown()[0].Workers.Stats(time.Now())[0].ID
	drained := func(r *running) bool {
		return r.shown()[0].Workers.Stats(time.Now())[0].Drained
	}
	path := "/api/v1/pools/" + all[0].shown()[0].Name + "/workers/" + worker + "/drain"
	for i, method := range []string{"POST", "DELETE"} {
		req, _ := http.NewRequest(method, "http://"+all[i].AdminAddr()+path, nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		resp.Body.Close()
		eventually(t, method+" reaches both routers", func() bool {
			return drained(all[0]) == (method == "POST") && drained(all[1]) == (method == "POST")
		})
	}
}
