package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// chat sends worker i a prompt that it holds and lets the stream end: 101 tokens, the first after that many seconds.
func (p *Pool) chat(i int, at, first, perToken float64) {
	k := p.send(i, Dispatch{PromptTokens: 4000, CachedTokens: 3990}, at)
	k.FirstByte(p.after(at + first))
	k.End(p.after(at+first+100*perToken), judge.Outcome{Kind: judge.Answered, Tokens: 101})
}

// chats sends each worker one chat every 5 s, with its own times of the first byte and of a token.
func chats(p *Pool, from, to float64, first, perToken []float64) {
	for at := from; at < to; at += 5 {
		for i := range first {
			p.chat(i, at, first[i], perToken[i])
		}
		p.rows(at + 4)
	}
}

// A worker whose streams are slow is learnt although no prompt is computed anywhere, and not forgotten for as long as
// they are.
func TestSlowDecoderIsLearnt(t *testing.T) {
	p := upPool(t, 4)
	usual, slow := []float64{.015, .015, .015, .015}, []float64{.005, .006, .04, .004}
	chats(p, 1, 400, usual, slow)
	for _, until := range []float64{400, 1600} {
		m := slowness(p, until)
		near(t, "slowness of usual workers", max(m[0], m[1], m[3]), 1, .01)
		near(t, "slowness of the slow one", m[2], 8, .1)
		chats(p, 400, 1600, usual, slow)
	}
	chats(p, 1600, 2400, usual, []float64{.005, .006, .006, .004})
	near(t, "slowness once it is well", slowness(p, 2400)[2], 1, .01)
}

// A worker that is given no stream is tried again after a while.
func TestSlowDecoderIsTriedAgain(t *testing.T) {
	p := upPool(t, 3)
	chats(p, 1, 400, []float64{.015, .015, .015}, []float64{.005, .04, .005})
	if m := slowness(p, 400)[1]; m < 7 {
		t.Fatalf("slowness %.2f; want about 8", m)
	}
	for at := 400.0; at < 1300; at += 5 {
		p.chat(0, at, .015, .005)
		p.chat(2, at, .015, .005)
		p.rows(at)
	}
	near(t, "slowness without a stream in 15 minutes", slowness(p, 1300)[1], 1, .15)
}

// Load makes streams slower too, and clients that read slowly do: neither makes a worker slow.
func TestBusyIsNotSlow(t *testing.T) {
	first := []float64{.015, .015, .015}
	p := upPool(t, 3)
	chats(p, 1, 600, first, []float64{.005, .0125, .005})
	near(t, "slowness of a busy worker", slowness(p, 600)[1], 1, 0)

	p = upPool(t, 3)
	tellers := []*teller{{}, {}, {}}
	for at := 1.0; at < 600; at += 5 {
		chats(p, at, at+5, first, []float64{.02, .15, .02})
		for i, s := range tellers {
			s.serve(1, 10, fast)
			p.scrape(i, s.page(), at+4.5)
		}
	}
	near(t, "slowness of a worker whose client reads slowly", slowness(p, 600)[1], 1, 0)

	// Without the engine's own figure: one client of four reads at a token a second, all of its chats at one worker.
	p = upPool(t, 3)
	for at := 1.0; at < 1800; at += 20 {
		chats(p, at, at+15, first, []float64{.02, .02, .02})
		chats(p, at+15, at+20, first, []float64{.02, 1, .02})
	}
	near(t, "slowness of a worker, one client of which reads slowly", slowness(p, 1800)[1], 1, 0)

	p = upPool(t, 1)
	chats(p, 1, 600, first[:1], []float64{.5})
	near(t, "slowness of a worker that is alone", slowness(p, 600)[0], 1, 0)
}

// What was learnt of a slow worker does not fade while its first byte is late.
func TestLateFirstByteKeepsSlowness(t *testing.T) {
	perToken := []float64{.005, .005, .005}
	for _, c := range []struct{ first, least, most float64 }{{.12, 5, 5}, {.02, .9, 1.1}} {
		p := upPool(t, 3)
		chats(p, 1, 60, []float64{.015, c.first, .015}, perToken)
		p.fleet.workers[1].speed.Rel = 5
		chats(p, 60, 1500, []float64{.015, c.first, .015}, perToken)
		if m := slowness(p, 1500)[1]; m < c.least || m > c.most {
			t.Errorf("first byte after %v s beside .015: slowness %.2f; want %v to %v", c.first, m, c.least, c.most)
		}
	}
}
