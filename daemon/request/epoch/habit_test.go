package epoch

import (
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

func TestHabit(t *testing.T) {
	id := strings.Repeat("a", 32)
	at := prompt.Frame{Before: 9}
	var h Habit
	strict := func(what string, first, again, want bool) {
		t.Helper()
		if m := h.Mark(id, first, again); m.Strict != want || m.ID != id {
			t.Errorf("%s: %+v; want strict %v", what, m, want)
		}
	}
	strict("nothing known", false, false, false)
	h.Learn("short", prompt.OwnerSame, at)
	strict("a short id teaches nothing", false, false, false)
	h.Learn(id, prompt.OwnerOther, at)
	h.Learn(id, prompt.OwnerUnknown, prompt.Frame{})
	strict("an answer without it", false, false, false)
	h.Learn(id, prompt.OwnerSame, at)
	strict("one with it", false, false, true)
	strict("on a new connection", true, false, true)
	strict("on a used one, again", false, true, true)
	strict("on a new one, again", true, true, false)
	h.Refused(id, false)
	strict("refused on a used connection", true, false, true)
	h.Refused("short", true)
	strict("refused for a short id", true, false, true)
	h.Refused(id, true)
	strict("refused on a new one", true, false, false)
	h.Learn(id, prompt.OwnerSame, at)
	strict("right again", true, false, true)
	if m := h.Mark(id, false, false); m.Frame != at {
		t.Errorf("%+v; want the frame %+v", m, at)
	}
	h.Learn(id, prompt.OwnerSame, prompt.Frame{Before: 5, After: 2})
	h.Learn(id, prompt.OwnerSame, prompt.Frame{Before: 5, After: 2})
	if m := h.Mark(id, false, false); !m.Frame.Loose {
		t.Errorf("%+v; want a loose frame after two", m)
	}
	for range maxLost {
		h.Learn(id, prompt.OwnerSame, at)
		strict("learnt", false, false, true)
		h.Learn(id, prompt.OwnerOther, at)
		strict("given up", false, false, false)
	}
	h.Learn(id, prompt.OwnerSame, at)
	strict("given up too often", false, false, false)

	var all habits
	one := all.of(prompt.Chat, true)
	one.known = h.known
	all.forget()
	one.Learn(id, prompt.OwnerSame, at)
	if !one.Mark(id, false, false).Strict || all.of(prompt.Chat, false).kept || (*habits)(nil).of(prompt.Chat, true).Mark(id, false, false).Strict {
		t.Error("after a restart it is learnt anew, for that kind and form alone")
	}
}

// TestHabitsOutliveAReload: a worker that stays keeps what is known of its ids; one that is new has none.
func TestHabitsOutliveAReload(t *testing.T) {
	const a = "http://127.0.0.1:9001"
	var c Clients
	c.Set(map[string]*upstream.Client{a: nil})
	before := c.Habit(a, prompt.Chat, true)
	before.Learn(strings.Repeat("a", 32), prompt.OwnerSame, prompt.Frame{Before: 9})
	c.Set(c.of)
	if got := c.Habit(a, prompt.Chat, true); got != before || !got.kept {
		t.Error("a reload lost it")
	}
	c.Restarted(a)
	c.Restarted("http://nowhere")
	if before.kept || c.Habit("http://nowhere", prompt.Chat, true) != nil {
		t.Error("a restart kept it")
	}
	if MarkOf("a") == 0 || MarkOf("a") == MarkOf("b") {
		t.Error("marks of ids")
	}
}

// TestHammerHabit: answers teach and are judged at once. A mark is strict only with the frame that was learnt, as both
// are read together.
func TestHammerHabit(t *testing.T) {
	h := new(habits)
	at := prompt.Frame{Loose: true}
	const id = "0123456789abcdef0123456789abcdef"
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				one := h.of(0, i%2 == 0)
				switch i % 5 {
				case 0, 1:
					one.Learn(id, prompt.OwnerSame, at)
				case 2:
					one.Refused(id, true)
				case 3:
					h.forget()
				default:
					if m := one.Mark(id, false, false); m.Strict && m.Frame != at {
						t.Errorf("a strict mark with the frame %+v", m.Frame)
						return
					}
				}
			}
		})
	}
	all.Wait()
}
