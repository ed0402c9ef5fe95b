package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestARefusingRedisIsShown: a Redis that refuses in any way is named with its remedy, for the sessions and the history
// that it should keep: in a line of the log each and in what `warmpath status` reads. Sessions are served meanwhile.
func TestARefusingRedisIsShown(t *testing.T) {
	t.Parallel()
	for _, refusal := range redistest.Refusals(t) {
		// A parallel subtest would come after all tests that wait, when the LOADING is over.
		t.Run(refusal.Name, func(t *testing.T) {
			r, lines := startLogged(t, "[cache]\nredis = \""+refusal.URL+"\"\n"+
				settings("session", sims(t, 2, vllmsim.Config{}).URLs()...), 2)
			ask := func(session string) (worker string) {
				s := r.do("POST", "/v1/completions", short, "X-Session-Id", session, "X-Warmpath-Explain", "1")
				if s.status != 200 {
					t.Errorf("session %s: %d %s", session, s.status, s.body)
				}
				return s.header.Get("X-Warmpath-Worker")
			}
			first := ask("a")
			const want = 2 // the store and the history
			eventually(t, "the overview says what to do", func() bool {
				ask("b")
				return strings.Count(states(t, r), refusal.Remedy) == want
			})
			if again := ask("a"); again != first {
				t.Errorf("the session went to %s, then to %s", first, again)
			}
			if n := strings.Count(lines.String(), refusal.Remedy); n < want || n > want+1 { // history may name the pool, too
				t.Errorf("%d lines say what to do, want %d or one more:\n%s", n, want, lines.String())
			}
		})
	}
}

// TestARedisThatStopsRefusing: what was refused is written once the Redis takes it.
func TestARedisThatStopsRefusing(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	redis.Do("CONFIG SET requirepass right")
	r := start(t, "[cache]\nredis = \""+redis.URL()+"\"\n"+settings("session", sims(t, 1, vllmsim.Config{}).URLs()...), 1)
	eventually(t, "both say what to do", func() bool {
		return strings.Count(states(t, r), "correct the user and the password") == 2
	})
	if s := r.do("POST", "/v1/completions", short, "X-Session-Id", "a"); s.status != 200 {
		t.Errorf("%d %s\n%s", s.status, s.body, states(t, r))
	}
	redis.Kill()
	redis.Start() // without a password
	eventually(t, "both are there again", func() bool { return strings.Count(states(t, r), ": answers\n") == 2 })
}

// TestKeysInOtherUse: somebody makes hashes of all of the routers' keys. A router that runs and one that starts serve on,
// and say which key is to be deleted.
func TestKeysInOtherUse(t *testing.T) {
	redis := redistest.Start(t)
	toml := "[cache]\nredis = \"" + redis.URL() + "\"\n" + settings("session", sims(t, 2, vllmsim.Config{}).URLs()...)
	first, lines := startLogged(t, toml, 2)
	ask := func(r *running, session string) {
		t.Helper()
		if s := r.do("POST", "/v1/completions", short, "X-Session-Id", session); s.status != 200 {
			t.Errorf("session %s: %d %s", session, s.status, s.body)
		}
	}
	for i := range 20 {
		ask(first, fmt.Sprint("s", i))
	}
	eventually(t, "Redis has heard everything", func() bool { return first.tier.Stats().L2.Owing == 0 })
	redis.Do(`EVAL "for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', k) redis.call('HSET', k, 'f', 'v') end return 1" 0`)
	second, others := startLogged(t, toml, 2)
	const remedy = "delete the key that the line names"
	told := func(l *logLines) bool { return strings.Contains(l.String(), remedy) }
	eventually(t, "both say what to do", func() bool {
		for i := range 20 {
			ask(first, fmt.Sprint("s", i))
			ask(second, fmt.Sprint("s", i))
		}
		return told(lines) && told(others) && strings.Contains(states(t, first), remedy)
	})
}

// states lists what the overview says of the stores that routers share.
func states(t *testing.T, r *running) (all string) {
	t.Helper()
	for _, tier := range overview(t, r).Tiers {
		all += tier.Name + ": " + tier.State + "\n"
	}
	return all
}

// overview returns what the page shows.
func overview(t *testing.T, r *running) (o operator.Overview) {
	t.Helper()
	if code, text := r.decided("/api/v1/overview", &o); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	return o
}
