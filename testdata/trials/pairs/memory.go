package main

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

const (
	perToken   = 10 * time.Microsecond // of a prefill
	blockWords = 16
)

// memory is the KV cache of one process of an engine, as far as others read it. A restart makes a new one.
//
//   - NIXL, vllm/distributed/kv_transfer/kv_connector/v1/nixl/pull_scheduler.py, request_finished: what ends by its
//     length or a stop is kept under the request's id until it is read, or its lease ends. What is aborted before is
//     freed at once. A decoder that aborts a request which it has not scheduled has the blocks freed.
//   - Mooncake, .../v1/mooncake/mooncake_connector.py: sends are kept in a map by transfer_id, so that a second one of
//     that id takes the place of the first. Only what ends by its length is kept. A decoder that has scheduled a
//     request has asked for it by then, and gets it if its own request is aborted, too. It waits for what never comes.
//   - SGLang, python/sglang/srt/disaggregation/{prefill,decode}.py: a prefiller computes nothing before the decoder is
//     there, and pushes. Both are aborted when one of them is. A room is of one request.
type memory struct {
	id string
	st *stage

	mu    sync.Mutex // guards all below
	busy  time.Time  // until then it computes what has come
	ended bool       // the process has
	kept  map[string]kept
	pulls map[string]chan *prompt // decoders that wait, by transfer_id
	rooms map[string]*room
}

// kept is a prompt whose blocks wait for a decoder.
type kept struct {
	prompt
	of    int // the request
	since time.Time
}

// room is where two workers of SGLang meet. Its memory's lock guards it.
type room struct {
	of       int
	came     int     // sides
	here     int     // of these
	decoder  bool    // the decoder has come
	aborted  bool    // one of them has left before the end
	computed *prompt // nil = not yet
	answers  int     // that the prefiller was asked for
}

func newMemory(st *stage) *memory {
	m := &memory{id: "engine-" + rand.Text()[:10], st: st, kept: map[string]kept{}, pulls: map[string]chan *prompt{},
		rooms: map[string]*room{}}
	st.mu.Lock()
	st.engines[m.id] = m
	st.mu.Unlock()
	return m
}

// end is the end of the process: nothing is kept any more.
func (m *memory) end() {
	m.st.mu.Lock()
	delete(m.st.engines, m.id)
	m.st.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.kept = true, nil
	for id, pull := range m.pulls {
		close(pull)
		delete(m.pulls, id)
	}
}

// compute waits until the engine has computed prompts, which it does one after another, and reports whether the caller
// was there until then. begun: it was when the engine began.
func (m *memory) compute(c *wire.Call, n int) (begun, done bool) {
	m.mu.Lock()
	now := time.Now()
	begin := now
	if m.busy.After(now) {
		begin = m.busy
	}
	m.busy = begin.Add(time.Duration(n) * perToken)
	end := m.busy
	m.mu.Unlock()
	if c.Wait(time.Until(begin)) {
		return false, false
	}
	return true, !c.Wait(time.Until(end))
}

// keep keeps a prompt under a name until somebody takes it.
func (m *memory) keep(name string, p prompt, of int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	if pull := m.pulls[name]; pull != nil {
		delete(m.pulls, name)
		pull <- &p
		return
	}
	if was, twice := m.kept[name]; twice {
		m.st.breach("clash", of, "%s is also the name of request %d's blocks", name, was.of)
	}
	m.kept[name] = kept{prompt: p, of: of, since: time.Now()}
}

// take frees what is kept under a name and returns it, nil if there is nothing.
func (m *memory) take(name string) *prompt {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[name]
	if !ok {
		return nil
	}
	delete(m.kept, name)
	return &k.prompt
}

// pull is take of what may not be there yet.
func (m *memory) pull(name string, of int) <-chan *prompt {
	got := make(chan *prompt, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.kept[name]
	switch {
	case m.ended:
		close(got)
	case ok:
		delete(m.kept, name)
		got <- &k.prompt
	case m.pulls[name] != nil:
		m.st.breach("clash", of, "two decoders wait for %s", name)
		close(got)
	default:
		m.pulls[name] = got
	}
	return got
}

// unsent ends the wait of a decoder for what will not come.
func (m *memory) unsent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if pull := m.pulls[name]; pull != nil {
		delete(m.pulls, name)
		close(pull)
	}
}

// enter comes to a room, which it makes if it is the first.
func (m *memory) enter(name string, of int, decoder bool) *room {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.rooms[name]
	if r == nil {
		r = &room{of: of}
		m.rooms[name] = r
	}
	r.came++
	r.here++
	if r.came > 2 || r.of != of || decoder && r.decoder {
		m.st.breach("clash", of, "room %s is request %d's: %d have come, %d are here, a decoder %v, before %v", name, r.of,
			r.came, r.here, decoder, r.decoder)
	}
	r.decoder = r.decoder || decoder
	return r
}

// leave leaves a room. whole: this side has done its part.
func (m *memory) leave(name string, r *room, whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.aborted = r.aborted || !whole
	r.here--
	if r.here == 0 && m.rooms[name] == r {
		delete(m.rooms, name)
	}
}

// look reports what is in a room.
func (m *memory) look(r *room) (computed *prompt, decoder, aborted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return r.computed, r.decoder, r.aborted || m.ended
}

// blocks returns how many blocks are kept, and for which requests.
func (m *memory) blocks() (n int, of []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.kept {
		n += (k.n + blockWords - 1) / blockWords
		of = append(of, k.of)
	}
	return n, of
}
