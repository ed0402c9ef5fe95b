package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/request/relocate"
)

// handingOver starts two routers that share a history and hand over the workers of a file each, and returns what writes
// the files anew.
func handingOver(t *testing.T, redis string, urls []string) (all []*running, set func(router int, urls ...string)) {
	t.Helper()
	dir := t.TempDir()
	set = func(router int, urls ...string) {
		text := ""
		for _, u := range urls {
			url, drained := strings.CutPrefix(u, "-")
			text += fmt.Sprintf("[[workers]]\nurl = %q\nid = %q\ndrain = %t\n", url, idOf(url), drained)
		}
		write(t, filepath.Join(dir, fmt.Sprint(router)), text)
	}
	for i := range 2 {
		set(i, urls...)
		toml, _, _ := strings.Cut(withHandOver("prefixaware", urls[0]), "[[pools.workers]]")
		toml += fmt.Sprintf("workers_file = %q\n[history]\nredis = %q\nname = \"router-%d\"\n", filepath.Join(dir, fmt.Sprint(i)), redis, i)
		all = append(all, start(t, toml, len(urls)))
	}
	for _, r := range all {
		eventually(t, "the routers hear each other", func() bool { return r.hears() == 1 })
	}
	return all, set
}

// sharedTurns has conversations whose turns come in at both routers, by the worker that has them. The last turn of each
// second one is the first router's. Before the last turns, the routers have seen that no worker drains. A conversation that
// was silent for 7 s is not moved, so as little as possible comes after those turns.
func sharedTurns(t *testing.T, all []*running, n int) map[string][]*chatting {
	t.Helper()
	at := map[string][]*chatting{}
	chats := make([]chatting, n)
	for turn, heard := range []time.Duration{100 * time.Millisecond, 2 * time.Second, 100 * time.Millisecond} {
		clear(at)
		for i := range chats {
			chats[i].id = i
			w, _ := chats[i].turn(t, all[(i+turn)%2])
			at[w] = append(at[w], &chats[i])
		}
		time.Sleep(heard) // by the other router
	}
	return at
}

// movesOf returns how many moves of both routers came to a result.
func movesOf(all []*running, result string) (n float64) {
	for _, r := range all {
		n += r.metric(`warmpath_conversation_moves_total{pool="main",result="` + result + `"}`)
	}
	return n
}

// TestTwoRoutersMoveEachConversationOnce: a worker leaves two routers whose conversations are the same. The router that
// has sent the last turn of one moves it, and the next turn finds its prompt cached at whichever router it comes in.
func TestTwoRoutersMoveEachConversationOnce(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"command", "drained", "gone"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			urls := sims(t, 3, vllmsim.Config{}).URLs()
			all, set := handingOver(t, redistest.Start(t).URL(), urls)
			at := sharedTurns(t, all, 12)
			leaves := idOf(urls[0])
			if len(at[leaves]) == 0 {
				t.Fatal("no conversation lives at the worker that leaves")
			}
			switch how {
			case "command":
				do(t, "POST", "http://"+all[0].AdminAddr()+"/api/v1/pools/main/workers/"+leaves+"/drain?hand_over=30s", "")
			case "drained":
				set(0, "-"+urls[0], urls[1], urls[2])
				set(1, "-"+urls[0], urls[1], urls[2])
			case "gone":
				set(0, urls[1:]...)
				set(1, urls[1:]...)
			}
			eventually(t, "its conversations have moved", func() bool { return movesOf(all, "moved") >= float64(len(at[leaves])) })
			time.Sleep(2 * time.Second) // whatever moves once more would do so now
			if n := movesOf(all, "moved"); n != float64(len(at[leaves])) || movesOf(all, "failed") != 0 {
				t.Errorf("%v moves, %v failed; want one of each of %d conversations", n, movesOf(all, "failed"), len(at[leaves]))
			}
			for i, r := range all {
				if r.metric(`warmpath_conversation_moves_total{pool="main",result="moved"}`) == 0 {
					t.Errorf("router %d has moved none of its conversations", i)
				}
			}
			for i, c := range at[leaves] {
				if w, cached := c.turn(t, all[i%2]); w == leaves || cached < .6 {
					t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
				}
			}
			eventually(t, "all moves were of use", func() bool { return movesOf(all, "used") == float64(len(at[leaves])) })
		})
	}
}

// TestRoutersWithOtherLists: the file of one router drains a worker, that of the other one does not. The first moves its
// own conversations alone, and the second goes on with that worker.
func TestRoutersWithOtherLists(t *testing.T) {
	t.Parallel()
	urls := sims(t, 3, vllmsim.Config{}).URLs()
	all, set := handingOver(t, redistest.Start(t).URL(), urls)
	at := sharedTurns(t, all, 12)
	leaves, theirs := idOf(urls[0]), 0
	for _, c := range at[leaves] {
		theirs += c.id % 2 // the last of three turns
	}
	if theirs == 0 || theirs == len(at[leaves]) {
		t.Fatalf("%d of the %d conversations at the worker that leaves are the first router's", theirs, len(at[leaves]))
	}
	set(1, "-"+urls[0], urls[1], urls[2])
	eventually(t, "its conversations have moved", func() bool { return movesOf(all[1:], "moved") >= float64(theirs) })
	time.Sleep(2 * time.Second)
	if a, b := movesOf(all[:1], "moved"), movesOf(all[1:], "moved"); a != 0 || b != float64(theirs) {
		t.Errorf("%v and %v moves; want 0 and %d", a, b, theirs)
	}
	for _, c := range at[leaves] {
		owner := c.id % 2
		if w, cached := c.turn(t, all[owner]); owner == 1 && w == leaves || cached < .6 {
			t.Errorf("conversation %d: its next turn went to %s, which had %.2f of it cached", c.id, w, cached)
		}
	}
}

// TestUndrainEndsTheMovesOfAllRouters: a worker is put back at the router that got the command, before its silent
// conversations have moved.
func TestUndrainEndsTheMovesOfAllRouters(t *testing.T) {
	t.Parallel()
	urls := sims(t, 2, vllmsim.Config{}).URLs()
	all, _ := handingOver(t, redistest.Start(t).URL(), urls)
	leaves := idOf(urls[0])
	for _, r := range all { // each has one that waits for its next turn
		r.state.Load().pools[0].route.Book.Answered(&relocate.Turn{Worker: leaves, Hashes: []uint64{1, 2}, Tokens: 100,
			Request: &relocate.Request{}}, time.Now().Add(-20*time.Second))
	}
	path := "http://" + all[0].AdminAddr() + "/api/v1/pools/main/workers/" + leaves + "/drain"
	do(t, "POST", path+"?hand_over=5m", "")
	p := all[1].state.Load().pools[0]
	eventually(t, "the other router hands it over too", func() bool { return len(p.Moving()) == 1 })
	do(t, "DELETE", path, "")
	eventually(t, "the other router has ended that", func() bool { return len(p.Moving()) == 0 && !p.route.Workers.Drains()[leaves] })
}

// TestATurnAtTheOtherRouterDuringAHandOver: until its router has moved a conversation, its next turn goes to the worker
// that leaves at the other router too.
func TestATurnAtTheOtherRouterDuringAHandOver(t *testing.T) {
	t.Parallel()
	urls := sims(t, 3, vllmsim.Config{Speed: 1}).URLs()
	all, _ := handingOver(t, redistest.Start(t).URL(), urls)
	c := &chatting{} // whose turns came in at the first router so far
	c.turn(t, all[0])
	leaves, _ := c.turn(t, all[0])
	time.Sleep(200 * time.Millisecond) // the other one hears of them
	for _, r := range all {            // nothing moves yet
		p := r.state.Load().pools[0]
		p.route.Book.Leave(leaves, time.Now())
		p.route.Workers.Drain(leaves, true, time.Now())
	}
	if w, cached := c.turn(t, all[1]); w != leaves || cached < .6 {
		t.Errorf("the turn went to %s, which had %.2f of it cached; want %s", w, cached, leaves)
	}
}

// TestTheRouterThatMovesDies: a router is killed while it moves conversations. What it has moved is found there by the
// other one, and the rest is answered.
func TestTheRouterThatMovesDies(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"router", "history"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			redis := redistest.New(t)
			redis.Start()
			urls := sims(t, 3, vllmsim.Config{Speed: 2}).URLs()
			all, _ := handingOver(t, redis.URL(), urls)
			at := sharedTurns(t, all, 16)
			leaves := idOf(urls[0])
			if len(at[leaves]) < 3 {
				t.Fatalf("%d conversations live at the worker that leaves", len(at[leaves]))
			}
			do(t, "POST", "http://"+all[0].AdminAddr()+"/api/v1/pools/main/workers/"+leaves+"/drain?hand_over=5s", "")
			eventually(t, "one has moved", func() bool { return movesOf(all, "moved") > 0 })
			eventually(t, "the other router knows", func() bool {
				p := all[1].state.Load().pools[0]
				return p.route.Workers.Drains()[leaves]
			})
			if what == "router" {
				all[0].stop()
			} else {
				redis.Kill()
			}
			time.Sleep(6 * time.Second)
			for _, c := range at[leaves] {
				if w, _ := c.turn(t, all[1]); w == leaves {
					t.Errorf("conversation %d: its next turn went to the worker that has left", c.id)
				}
			}
			if n := movesOf(all[1:], "failed"); n != 0 {
				t.Errorf("%v moves of the router that lives have failed", n)
			}
		})
	}
}
