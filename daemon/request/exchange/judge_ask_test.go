package exchange_test

import (
	"fmt"
	"io"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
)

const (
	chat       = "/v1/chat/completions"
	embeddings = "/v1/embeddings"
)

// kind is what a request does to the engines that get it.
type kind uint8

const (
	plain    kind = iota
	unlucky       // every engine fails it alike
	lethal        // every engine ends that gets it
	blocking      // every engine's event loop is busy with it for a while
)

// ask is one request of a client, with all of its attempts.
type ask struct {
	id      string
	body    string
	path    string
	kind    kind
	fate    mood // of an unlucky one
	streams bool
	length  time.Duration // of its answer, at least
	patient time.Duration // until its client leaves

	// Sets of engines, by place.
	tried, served uint16
	lost          uint16 // that do not serve others any more, by this request alone
	blocked       uint16
	opened        uint16 // that it has ever taken from the others

	failedAt map[mood]uint16 // sets of the engines that failed it so
	begun    int             // engines that failed it, other than by a refusal
	broken   int
	crowded  int
	ended    *int // engines, also by the same body before
	left     bool
	over     bool
	status   int
	code     string // the router's, if it refused it
	attempts string // the router's account of those that failed
	cut      bool   // its answer broke off
}

// failed notes that an engine fails the request.
func (a *ask) failed(e *engine, how mood) {
	again := a.failedAt[how]&(1<<e.place) != 0 // it was asked once more
	if a.failedAt == nil {
		a.failedAt = map[mood]uint16{}
	}
	a.failedAt[how] |= 1 << e.place
	if how != denies && !again {
		a.begun++
	}
	if (how == breaks || how == dying) && !again {
		a.broken++
	}
	e.bads = append(e.bads, bad{a, how, e.now()})
	if len(e.bads) > 40 {
		e.bads = e.bads[20:]
	}
}

// failedAlike reports whether two engines failed the request in the same way.
func (a *ask) failedAlike() bool {
	for _, set := range a.failedAt {
		if count(set) > 1 {
			return true
		}
	}
	return false
}

// failedBy reports whether an engine failed the request and never served it. One that only let it wait may serve it yet.
func (a *ask) failedBy(e *engine) bool {
	for how, set := range a.failedAt {
		if how != hangs && how != asleep && set&^a.served&(1<<e.place) != 0 {
			return true
		}
	}
	return false
}

// enter makes the request known to the engines.
func (f *fleet) enter(a *ask) *ask {
	f.lock()
	defer f.unlock()
	f.requests++
	a.id = fmt.Sprint("id-", f.requests)
	f.asks[a.id] = a
	if a.body == "" {
		a.body = fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"%d, please"}]}`, a.streams, f.requests)
		if a.path == embeddings {
			a.body = fmt.Sprintf(`{"model":"m","input":"%d, please"}`, f.requests)
		}
	}
	return a
}

// draws makes a random request.
func (f *fleet) random() *ask {
	a := &ask{path: chat, streams: f.chance(.6), patient: f.between(12, 90)}
	if f.chance(.15) {
		a.path, a.streams = embeddings, false
	}
	switch x := f.dice.float(); {
	case x < .12:
		a.kind, a.fate = unlucky, []mood{quits, fails, denies, breaks}[f.draw(4)]
		if a.path == embeddings && a.fate == quits {
			a.fate = denies
		}
	case x < .15:
		a.kind, a.ended = lethal, new(int)
	case x < .17:
		a.kind, a.length = blocking, f.between(1, longestBlock.Seconds())
	case x < .18:
		a.kind, a.length = blocking, f.between(20, 60)
	case x < .22:
		a.length = f.between(5, 30)
	}
	return a
}

// send is a client's request, from its beginning to the last byte of its answer. Nobody else runs at that instant.
func (f *fleet) send(a *ask) {
	f.clients.Add(1)
	go func() {
		defer f.clients.Done()
		f.serve(a)
	}()
}

func (f *fleet) serve(a *ask) {
	f.lock()
	f.step(a)
	patient := f.jitter(a.patient)
	f.unlock()
	life := new(message.Life)
	f.lives.Begin(life)
	defer life.Leave()
	leaves := time.AfterFunc(patient, func() {
		f.lock()
		f.step(a)
		a.left = true
		f.unlock()
		life.End(message.ErrClientGone)
	})
	in := &message.Inbound{Endpoint: message.Classify("POST", a.path), Method: "POST", Path: a.path, Body: []byte(a.body),
		Caller: everybody, ID: a.id, Epoch: f.epoch}
	out := f.server.Serve(life, in)
	if out.Stream != nil {
		_, err := io.Copy(io.Discard, out.Stream)
		a.cut = err != nil
		out.Stream.Close()
	}
	leaves.Stop()
	f.lock()
	defer f.unlock()
	a.status, a.code = out.Status, in.Seen.End
	for _, t := range in.Seen.Attempts {
		a.attempts += fmt.Sprintf(" %s %s", t.Worker, t.Reason)
		if t.Reason == "worker_silent" {
			a.begun++
		}
	}
	f.step(a)
	f.step(nil)
	f.judge(a)
}
