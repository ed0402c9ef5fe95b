package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

const (
	places  = 4           // requests that an engine answers at a time
	takes   = time.Second // for each
	engines = 8
)

// site is an engine of the fleet, and what it counts.
type site struct {
	engine.Engine
	addr string       // for Start after Close
	gate *engine.Gate // in front of it; nil = none

	slots chan struct{}
	asked atomic.Int64 // requests that came
	busy  atomic.Int64 // nanoseconds of answering, over all places
	cut   atomic.Int64 // answers that it broke off after their first byte
	blind atomic.Int64 // requests that it took in silence before anybody could know
	tells atomic.Int64 // requests and waiting ones, for its metrics
	taken atomic.Int64 // requests that got a place, for its metrics
	steps atomic.Int64 // in which it gave tokens, likewise
	born  atomic.Int64 // its process's start, in seconds

	mu    sync.Mutex // guards act and all below
	act   *sign      // what it plays; nil = it is well
	since time.Time  // when that began
	over  chan struct{}
	begun map[*wire.Call]bool // answers that have begun
}

// newSite starts an engine, behind a gate if it is to have one.
func newSite(gated bool) (*site, error) {
	s := &site{slots: make(chan struct{}, places), over: make(chan struct{}), begun: map[*wire.Call]bool{}}
	s.born.Store(1_700_000_000)
	s.Post, s.Health, s.Metrics, s.Page = s.post, s.health, s.metrics, s.page
	if err := s.Start("127.0.0.1:0"); err != nil {
		return nil, err
	}
	s.addr = s.Addr()
	if !gated {
		return s, nil
	}
	var err error
	s.gate, err = engine.NewGate(s.addr)
	return s, err
}

// door is where a router reaches the engine.
func (s *site) door() string {
	if s.gate != nil {
		return s.gate.Addr
	}
	return s.addr
}

// play begins a sign.
func (s *site) play(a *sign) {
	s.mu.Lock()
	s.act, s.since, s.over = a, time.Now(), make(chan struct{})
	s.mu.Unlock()
	if a.begin != nil {
		a.begin(s)
	}
}

// recover ends the sign.
func (s *site) recover() {
	s.mu.Lock()
	act := s.act
	s.act = nil
	close(s.over)
	s.mu.Unlock()
	if act.end != nil {
		act.end(s)
	}
}

// now is what the engine plays, since when, and a channel that is closed when it is over.
func (s *site) now() (act *sign, since time.Time, over chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.act, s.since, s.over
}

// die ends the process: its port is closed, its connections are reset. Answers that have begun are cut.
func (s *site) die() {
	s.mu.Lock()
	s.cut.Add(int64(len(s.begun)))
	s.begun = map[*wire.Call]bool{}
	s.mu.Unlock()
	s.Close()
}

// rise starts a new process on the same port.
func (s *site) rise() {
	s.born.Add(777)
	for range 100 {
		if s.Start(s.addr) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *site) health(c *wire.Call) bool {
	if act, since, _ := s.now(); act != nil && act.health != nil {
		if answered, keep := act.health(c, time.Since(since)); answered {
			return keep
		}
	}
	return c.Plain(200, "text/plain", "")
}

func (s *site) page(c *wire.Call) (answered, keep bool) {
	if c.Path != "/is_paused" {
		return false, false
	}
	act, _, _ := s.now()
	return true, c.Plain(200, "application/json", fmt.Sprintf(`{"is_paused":%v}`, act != nil && act.paused))
}

func (s *site) metrics() string {
	act, _, _ := s.now()
	awake := act == nil || !act.sleeps
	all := int(s.tells.Load())
	page := wire.Metrics(32768)
	for name, n := range map[string]int{"running": min(all, places), "waiting": max(0, all-places)} {
		gauge := fmt.Sprintf(`num_requests_%s{engine="0",model_name="sim"}`, name)
		page = strings.Replace(page, gauge+" 0.0", fmt.Sprintf("%s %d.0", gauge, n), 1)
	}
	page += fmt.Sprintf("# TYPE vllm:prefix_cache_queries counter\n"+
		"vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"sim\"} %d.0\n", 5*s.taken.Load())
	page += "# TYPE vllm:iteration_tokens_total histogram\n" +
		fmt.Sprintf("vllm:iteration_tokens_total_count{engine=\"0\",model_name=\"sim\"} %d.0\n", s.steps.Load())
	page += fmt.Sprintf("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d.5\n", s.born.Load())
	page += "# TYPE vllm:engine_sleep_state gauge\n"
	for state, on := range map[string]bool{"awake": awake, "weights_offloaded": !awake, "discard_all": false} {
		value := 0
		if on {
			value = 1
		}
		page += fmt.Sprintf("vllm:engine_sleep_state{engine=\"0\",model_name=\"sim\",sleep_state=%q} %d.0\n", state, value)
	}
	return page
}

func (s *site) post(c *wire.Call) bool {
	n := s.asked.Add(1)
	s.tells.Add(1)
	defer s.tells.Add(-1)
	if act, since, over := s.now(); act != nil {
		if act.silent {
			return s.hold(c, act, since, over)
		}
		if act.post != nil && n%act.each() == 0 {
			if answered, keep := act.post(s, c); answered {
				return keep
			}
		}
	}
	s.slots <- struct{}{}
	defer func() { <-s.slots }()
	s.taken.Add(1)
	s.steps.Add(1)
	if c.Wait(time.Millisecond) {
		return false // its client left while it waited
	}
	began := time.Now()
	defer func() { s.busy.Add(int64(time.Since(began))) }()
	return s.answer(c)
}

// hold takes a request and is silent until the sign is over.
func (s *site) hold(c *wire.Call, act *sign, since time.Time, over chan struct{}) bool {
	if time.Since(since) < act.unknown {
		s.blind.Add(1)
	}
	for {
		select {
		case <-over:
			return s.answer(c)
		default:
			if c.Wait(100 * time.Millisecond) {
				return false
			}
		}
	}
}

// answer answers in a second. A stream begins after 0.2 s and has 8 words.
func (s *site) answer(c *wire.Call) bool {
	if !engine.Streams(c) {
		return !c.Wait(takes) && engine.Echo(c)
	}
	if c.Wait(takes/5) || c.StreamHead() != nil {
		return false
	}
	defer s.note(c)()
	_ = c.Chunk(engine.Role)
	for range 8 {
		s.steps.Add(1)
		if c.Chunk(engine.Delta(`{"content":"word "}`, "null")) != nil || c.Wait(takes/10) {
			return false
		}
		if act, _, _ := s.now(); act != nil && act.aborts {
			return c.Chunk(engine.Delta(`{}`, `"abort"`)+engine.Done) == nil && engine.End(c) && s.counts()
		}
	}
	return c.Chunk(engine.Stop+engine.Done) == nil && engine.End(c)
}

// counts counts an answer that the engine cut.
func (s *site) counts() bool {
	s.cut.Add(1)
	return true
}

// note keeps an answer that has begun until the returned function is called.
func (s *site) note(c *wire.Call) (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun[c] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.begun, c)
	}
}
