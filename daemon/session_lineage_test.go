package daemon

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// teller is a client that names no session, and reads in the access log what the router takes its requests for.
type teller struct {
	*running
	log    string
	asked  int
	worker []any // of each request
}

// tells starts a router with an access log.
func tells(t *testing.T, toml string, n int) *teller {
	t.Helper()
	log := filepath.Join(t.TempDir(), "access.log")
	toml = strings.Replace(toml, "[server]", fmt.Sprintf("[server]\naccess_log = %q", log), 1)
	return &teller{running: start(t, toml, n), log: log}
}

// say sends a chat, and returns it with its answer, and what the log has of it: who named its session, which, and the
// turn.
func (c *teller) say(t *testing.T, m []chatMessage, header ...string) (next []chatMessage, named string) {
	t.Helper()
	s := c.do("POST", "/v1/chat/completions", chatBody(c.asked%2 == 0, m), header...)
	if s.status != 200 || s.err != nil {
		t.Fatalf("%d %v %s", s.status, s.err, s.body)
	}
	content, _ := s.text(t)
	c.asked++
	var all []map[string]any
	eventually(t, "a line for each request", func() bool { all = logged(t, c.log); return len(all) == c.asked })
	l := all[len(all)-1]
	c.worker = append(c.worker, l["worker"])
	return append(slices.Clone(m), chatMessage{"assistant", content}), fmt.Sprint(l["named_by"], l["identity"], l["turn"])
}

const noName = "<nil> <nil> <nil>"

// turnOf returns what say returns for a turn of the session that it was of before.
func turnOf(before string, turn int) string { return fmt.Sprint(before[:len(before)-1], turn) }

// user appends a message to a chat.
func user(m []chatMessage, text string) []chatMessage {
	return append(slices.Clone(m), chatMessage{"user", text})
}

// opens begins a chat of some blocks.
func opens(name string) []chatMessage {
	return []chatMessage{{"system", strings.Repeat("You know the tides of "+name+". ", 40)}, {"user", "When is high water?"}}
}

// TestConversationsWithoutNames: a client that names no session is known from the second turn on by what its prompt
// extends, and stays at its worker. A branch, a shorter history and a name of its own are no part of it.
func TestConversationsWithoutNames(t *testing.T) {
	t.Parallel()
	c := tells(t, settings("prefixaware", sims(t, 3, vllmsim.Config{}).URLs()...), 3)
	told := func(what string, m []chatMessage, want string, header ...string) []chatMessage {
		t.Helper()
		next, got := c.say(t, m, header...)
		if want != got {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
		return next
	}
	one := told("a first turn", opens("Brest"), noName)
	two, session := c.say(t, user(one, "And after that?"))
	if !strings.HasPrefix(session, "lineage") || !strings.HasSuffix(session, "2") {
		t.Fatalf("the second turn: %s; want one of a lineage", session)
	}
	told("another branch of it", user(one, "And before that?"), noName)
	three := told("the third turn", user(two, "And then?"), turnOf(session, 3))
	told("another chat that begins alike", opens("Brest")[:1], noName)
	told("with what it has said left out", append(slices.Clone(three[:2]), chatMessage{"user", "Go on."}), noName)
	told("with its history compacted", user(opens("Brest")[:1], "Summary: high water was at noon. Go on."), noName)
	four, got := c.say(t, user(three, "And the day after?"), "X-Session-Id", "mine")
	if !strings.HasPrefix(got, "X-Session-Id") || !strings.HasSuffix(got, "1") {
		t.Errorf("with a name: %s; want its first turn by X-Session-Id", got)
	}
	told("without it again", user(four, "Thanks."), turnOf(session, 4))
	for i, at := range c.worker[:4] {
		if at != c.worker[0] {
			t.Errorf("turn %d went to %v; the conversation is at %v", i, at, c.worker[0])
		}
	}
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	five, _ := c.say(t, opens("Ushant"))
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, got := c.say(t, user(five, "And then?")); !strings.HasPrefix(got, "lineage") {
		t.Errorf("after a reload: %s", got)
	}
}

// TestTenantsShareNoConversation: keys that send the same chat have one each.
func TestTenantsShareNoConversation(t *testing.T) {
	t.Parallel()
	c := tells(t, settings("prefixaware", sims(t, 2, vllmsim.Config{}).URLs()...)+tenants(t), 2)
	alice, bob := []string{"Authorization", "Bearer alice-secret"}, []string{"Authorization", "Bearer bob-secret"}
	one, _ := c.say(t, opens("Brest"), alice...)
	if _, got := c.say(t, user(one, "And then?"), bob...); got != noName {
		t.Errorf("bob's prompt, which extends alice's, is of %s", got)
	}
	if _, got := c.say(t, user(one, "And then?"), alice...); !strings.HasPrefix(got, "lineage") {
		t.Errorf("alice's own is of %s", got)
	}
}

// TestConversationsWithoutNamesOverTwoRouters: each router knows what it has sent itself. The conversation stays at its
// worker all the same.
func TestConversationsWithoutNamesOverTwoRouters(t *testing.T) {
	t.Parallel()
	f := sims(t, 3, vllmsim.Config{})
	url := redistest.Start(t).URL()
	var both []*teller
	for i := range 2 {
		both = append(both, tells(t, settings("prefixaware", f.URLs()...)+fmt.Sprintf("[history]\nredis = %q\nname = \"router-%d\"\n", url, i), 3))
	}
	for _, c := range both {
		eventually(t, "the routers hear each other", func() bool { return c.hears() == 1 })
	}
	m := opens("Brest")
	for turn := range 6 {
		next, _ := both[turn%2].say(t, m)
		m = user(next, "And after that?")
		eventually(t, "both know of the answer", func() bool {
			return both[0].shown()[0].Index.Stats().Blocks == both[1].shown()[0].Index.Stats().Blocks
		})
	}
	for _, c := range both {
		for i, at := range c.worker {
			if at != both[0].worker[0] {
				t.Errorf("turn %d went to %v; the first to %v", i, at, both[0].worker[0])
			}
		}
	}
}
