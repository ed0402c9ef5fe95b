package vllmsim

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/msgpack"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// spot is where a reader believes a block.
type spot struct {
	medium string
	hash   uint64
}

// reader follows the events of one rank as a router does: it applies what is next, drops what it knows, and asks for a
// replay where something is missing or the sequence begins anew.
type reader struct {
	t      *testing.T
	source events.Source
	ctx    context.Context

	mu   sync.Mutex // guards what follows
	next uint64
	view map[spot]int
}

// follow subscribes to a source until the test ends, and dials again whenever the connection ends.
func follow(t *testing.T, source events.Source) *reader {
	ctx, end := context.WithCancel(context.Background())
	r := &reader{t: t, source: source, ctx: ctx, view: map[spot]int{}}
	var over sync.WaitGroup
	over.Go(func() {
		for ctx.Err() == nil {
			c, err := zmtp.Dial(ctx, source.Endpoint, zmtp.Config{Kind: zmtp.SUB, Subscribe: []string{""}})
			for err == nil {
				var m [][]byte
				if m, err = c.Recv(); err == nil {
					r.receive(m)
				}
			}
			time.Sleep(time.Millisecond)
		}
	})
	t.Cleanup(func() {
		end()
		over.Wait()
	})
	return r
}

// receive takes a published message.
func (r *reader) receive(m [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(m) != 3 || string(m[0]) != r.source.Topic {
		r.t.Errorf("a message of %d frames, topic %q; want %q", len(m), m[0], r.source.Topic)
		return
	}
	switch seq := binary.BigEndian.Uint64(m[1]); {
	case seq == r.next:
		r.apply(m[2])
	case seq > r.next:
		r.replay()
	}
}

// apply plays a payload. It wants mu.
func (r *reader) apply(payload []byte) {
	r.next++
	v, err := msgpack.Decode(payload)
	if err != nil {
		r.t.Error(err)
		return
	}
	for _, event := range v.([]any)[1].([]any) {
		r.applyEvent(event)
	}
}

func (r *reader) applyEvent(event any) {
	m, ok := event.(map[string]any)
	if list, isList := event.([]any); isList {
		m = map[string]any{"type": list[0]}
		switch list[0] {
		case "BlockStored":
			m["block_hashes"], m["parent_block_hash"], m["medium"] = list[1], list[2], list[6]
		case "BlockRemoved":
			m["block_hashes"], m["medium"] = list[1], list[2]
		}
	} else if !ok {
		r.t.Errorf("event %v", event)
		return
	}
	if m["type"] == "AllBlocksCleared" {
		clear(r.view)
		return
	}
	medium, _ := m["medium"].(string)
	if parent, ok := m["parent_block_hash"].(uint64); ok && r.view[spot{medium, parent}] == 0 {
		r.t.Errorf("a block is stored behind %x, which is not there", parent)
	}
	for _, h := range m["block_hashes"].([]any) {
		at := spot{medium, h.(uint64)}
		if m["type"] == "BlockStored" {
			r.view[at]++
			continue
		}
		r.view[at]--
		if r.view[at] < 0 {
			r.t.Errorf("%v is removed and was not there", at)
		}
		if r.view[at] == 0 {
			delete(r.view, at)
		}
	}
}

// replay asks for what is missing. It wants mu.
func (r *reader) replay() {
	ctx, end := context.WithTimeout(r.ctx, 300*time.Millisecond)
	defer end()
	c, err := zmtp.Dial(ctx, *r.source.Replay, zmtp.Config{Kind: zmtp.DEALER})
	if err != nil {
		return // cut, or over
	}
	defer c.Close()
	if c.Send(nil, binary.BigEndian.AppendUint64(nil, r.next)) != nil {
		return
	}
	for {
		m, err := c.Recv()
		if err != nil {
			return // silent
		}
		if len(m) < 3 || len(m) > 4 || len(m[0]) > 0 {
			r.t.Errorf("a replayed message of %d frames", len(m))
			return
		}
		seq := binary.BigEndian.Uint64(m[len(m)-2])
		if seq == math.MaxUint64 {
			return
		}
		if seq != r.next {
			r.t.Errorf("replay sends %d, want %d", seq, r.next)
			return
		}
		r.apply(m[len(m)-1])
	}
}

// await waits until the reader has read up to a sequence number, and asks for a replay if nothing comes.
func (r *reader) await(next uint64) {
	r.t.Helper()
	for i := range 1000 {
		r.mu.Lock()
		if r.next < next && i%10 == 9 {
			r.replay()
		}
		got := r.next
		r.mu.Unlock()
		if got == next {
			return
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatalf("read up to %d of %d", r.next, next)
}

// restart forgets all, as a reader does when the process is another.
func (r *reader) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next = 0
	clear(r.view)
}

// settle waits until an idle rank's last step has ended, and returns what its caches hold and how many messages it
// sent.
func settle(t *testing.T, d *driver) (held map[spot]int, sent uint64) {
	t.Helper()
	for range 1000 {
		d.mu.Lock()
		d.advance()
		_, busy := d.engine.NextEvent()
		held = map[spot]int{}
		for h, n := range d.engine.Held(engine.OnGPU) {
			held[spot{"GPU", h}] = n
		}
		for h, n := range d.engine.Held(engine.OnCPU) {
			held[spot{"CPU", h}] = n
		}
		sent = d.events.Next()
		d.mu.Unlock()
		if !busy {
			return held, sent
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the engine never comes to rest")
	return nil, 0
}

// sources returns what GET /kv_event_sources answers.
func sources(t *testing.T, s *Server) (m map[string]events.Source) {
	t.Helper()
	if err := json.Unmarshal(do(s, "GET", "/kv_event_sources", "").Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEventsAreTheCaches: over random requests, resets and each fault in turn, whoever reads the events, and asks for a
// replay where they have a hole, holds what the caches hold.
func TestEventsAreTheCaches(t *testing.T) {
	socket := func(name string) string { return "ipc://" + filepath.Join(t.TempDir(), name) }
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"maps", Config{}},
		{"arrays", Config{KVEvents: KVEvents{Form: events.Array}}},
		{"ipc", Config{KVEvents: KVEvents{Endpoint: socket("kv"), Replay: socket("replay")}}},
		{"ranks", Config{DataParallel: 3}},
		{"cpu tier", Config{CPUTokens: 8000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := c.cfg
			if cfg.KVEvents.Endpoint == "" {
				cfg.KVEvents.Endpoint = "tcp://127.0.0.1:0"
				cfg.KVEvents.Replay = "tcp://127.0.0.1:0"
			}
			cfg.KVEvents.Topic = "kv@{id}@{model}"
			cfg.KVTokens = 2000
			cfg.Speed = 2000
			cfg.DevMode = true
			s := newTiny(t, cfg)
			playFaults(t, s, rand.New(rand.NewPCG(1, uint64(len(c.name)))))
		})
	}
}

// playFaults plays requests through each fault.
func playFaults(t *testing.T, s *Server, rng *rand.Rand) {
	var readers []*reader
	for rank, d := range s.process.Load().infer.ranks.drivers {
		readers = append(readers, follow(t, d.events.Source()))
		if got := sources(t, s)[fmt.Sprint(rank)]; got.Endpoint != d.events.Source().Endpoint {
			t.Errorf("rank %d is said to be at %s", rank, got.Endpoint)
		}
	}
	all := []string{FaultNone, FaultEventsGap, FaultEventsDuplicate, FaultEventsReorder, FaultEventsSilence, FaultEventsCut,
		FaultEventsRestart}
	for range 2 {
		for _, mode := range all {
			if err := s.SetFault(Fault{Mode: mode, Count: rng.IntN(3)}); err != nil {
				t.Fatal(err)
			}
			if mode == FaultEventsRestart {
				for i, r := range readers {
					r.restart()
					waittest.Until(t, "the reader is back", func() bool {
						return s.process.Load().infer.ranks.drivers[i].events.Subscribers() == 1
					})
				}
			}
			for range 6 {
				askRandomly(t, s, rng)
			}
			if err := s.SetFault(Fault{Mode: FaultNone}); err != nil {
				t.Fatal(err)
			}
			for rank := range readers { // a reset is reported with the next step of each
				askRandomly(t, s, rng, rankHeader, fmt.Sprint(rank))
			}
			for i, d := range s.process.Load().infer.ranks.drivers {
				held, sent := settle(t, d)
				readers[i].await(sent)
				if !maps.Equal(readers[i].view, held) {
					t.Fatalf("%s: rank %d holds %d blocks, its events say %d or others", mode, i, len(held), len(readers[i].view))
				}
			}
		}
	}
}

// askRandomly sends a prompt, now and then one that grows from an earlier one, or empties all caches before it.
func askRandomly(t *testing.T, s *Server, rng *rand.Rand, header ...string) {
	t.Helper()
	if len(header) == 0 && rng.IntN(12) == 0 {
		do(s, "POST", "/reset_prefix_cache?reset_external=true&reset_running_requests=true", "")
	}
	text := engine.TextOfTokens(uint64(rng.IntN(5)), 16*(1+rng.IntN(60))+rng.IntN(2))
	body := fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"cache_salt":"s%d"}`, text, 1+rng.IntN(40), rng.IntN(2))
	if w := do(s, "POST", "/v1/completions", body, header...); w.Code != 200 {
		t.Fatal(w.Body)
	}
}
