package daemon

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// TestARefusingRedisIsShown: a Redis that refuses the password is named with its remedy on the page of both that use
// it, and sessions are served from memory.
func TestARefusingRedisIsShown(t *testing.T) {
	redis := redistest.Start(t)
	redis.Do("CONFIG SET requirepass right")
	f := sims(t, 1, vllmsim.Config{})
	r := start(t, "[cache]\nredis = \""+redis.URL()+"\"\n"+settings("session", f.URLs()...), 1)
	states := func() (all string) {
		for _, tier := range overview(t, r).Tiers {
			all += tier.Name + ": " + tier.State + "\n"
		}
		return all
	}
	eventually(t, "both say what to do", func() bool {
		return strings.Count(states(), "correct the user and the password") == 2
	})
	if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"a","max_tokens":1}`, "X-Session-Id", "a"); s.status != 200 {
		t.Errorf("%d %s\n%s", s.status, s.body, states())
	}
	redis.Kill()
	redis.Start() // without a password
	eventually(t, "both are there again", func() bool { return strings.Count(states(), ": answers\n") == 2 })
}

// overview returns what the page shows.
func overview(t *testing.T, r *running) (o operator.Overview) {
	t.Helper()
	if code, text := r.decided("/api/v1/overview", &o); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	return o
}
