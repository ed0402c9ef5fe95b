package relocate

import (
	"fmt"
	"testing"
	"time"
)

// tiered returns a book of workers that share a tier.
func tiered(tokens int, workers string) *Book {
	b := newBook(8 << 20)
	b.Tier = func() bool { return true }
	b.talks(tokens, workers)
	return b
}

// through plays a plan of tiered's conversations, and returns what was sent: its way, where to, and its tokens. has
// returns who answers, and how many of the tokens it had cached.
func through(p *Plan, has func(m *Move) (to string, cached int)) (sent string) {
	for now := at; now.Sub(at) < time.Minute; {
		m, wait := p.Next(now)
		switch {
		case m != nil:
			to, cached := has(m)
			p.Moved(m, to, cached, now, now.Add(10*time.Millisecond))
			sent += fmt.Sprint(m.Way, m.To, m.Tokens, " ")
		case wait == 0:
			return sent
		default:
			now = now.Add(wait)
		}
	}
	return sent + "and no end"
}

// TestThroughATier: the worker that leaves stores a prompt, and the new one loads it in one piece.
func TestThroughATier(t *testing.T) {
	b := tiered(5000, "a")
	b.Takers = up("b")
	p := b.Plan("a", at, at.Add(time.Hour))
	sent := through(p, func(m *Move) (string, int) { return m.To, 4900 })
	if sent != "1a5000 2b5000 " {
		t.Errorf("sent %q; want a store at a, a load at b", sent)
	}
	c := b.Counts()
	if said := p.End(); said != (Progress{Moved: 1, Loaded: 1, Tokens: 5000}) || c.TokensLoaded != 5000 || c.TokensMoved != 5000 ||
		c.Took != [ways]time.Duration{Store: 10 * time.Millisecond, Load: 10 * time.Millisecond} {
		t.Errorf("%+v, %+v", said, c)
	}
}

// TestTheTierHasLost: the new worker has to compute the first prompt whole, as the tier is full or nobody writes to it.
// The others move in pieces.
func TestTheTierHasLost(t *testing.T) {
	b := tiered(5000, "aaa")
	b.Takers = up("b")
	p := b.Plan("a", at, at.Add(time.Hour))
	stores, pieces := 0, 0
	through(p, func(m *Move) (string, int) {
		if m.Way == Store {
			stores++
		} else if !m.Whole {
			pieces++
		}
		return m.To, m.done
	})
	if said := p.End(); stores != 1 || pieces < 2 || said != (Progress{Moved: 3, Tokens: 15000}) || b.Counts().TokensLoaded != 0 {
		t.Errorf("%d stores, %d pieces, %+v, %+v", stores, pieces, said, b.Counts())
	}
}

// TestTheWorkerDiesBeforeItStores: what it wrote before is loaded all the same.
func TestTheWorkerDiesBeforeItStores(t *testing.T) {
	b := tiered(5000, "a")
	b.Takers = up("b")
	p := b.Plan("a", at, at.Add(time.Hour))
	through(p, func(m *Move) (string, int) {
		if m.Way == Store {
			return "", 0
		}
		return m.To, 5000
	})
	if said := p.End(); said != (Progress{Moved: 1, Loaded: 1, Tokens: 5000}) {
		t.Errorf("%+v", said)
	}
}

// TestNobodyLoads: the new worker takes nothing; the conversation stays where it is, and nothing is left held.
func TestNobodyLoads(t *testing.T) {
	b := tiered(5000, "a")
	b.Takers = up("b")
	p := b.Plan("a", at, at.Add(time.Hour))
	through(p, func(m *Move) (string, int) {
		if m.Way == Store {
			return m.To, 5000
		}
		return "", 0
	})
	if said := p.End(); said != (Progress{Failed: 1}) || b.holds.Load() != 0 || b.live(at)["a"] != 1 {
		t.Errorf("%+v, %d held, %v", said, b.holds.Load(), b.live(at))
	}
}
