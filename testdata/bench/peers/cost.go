package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// slice is how long the routers of one side have the requests before those of the other side get them: so the machine's
// other work meets both alike.
const slice = time.Second

// side is the routers that share, or those that do not, with what they have used.
type side struct {
	*stage
	cpu, redisCPU time.Duration
	took          time.Duration
	requests      int
	before, after told
	busy          time.Duration // of the requests, from the first byte out to the last byte in
	failed        atomic.Int64
}

// told is what all routers of a side have published.
type told struct{ messages, bytes int }

// costs prints a row for each number of routers: the processor time of a request in the routers' processes with and
// without history, at the same load.
func costs(ctx context.Context, o *options) error {
	var counts []int
	for _, s := range strings.Split(o.routers, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > 64 {
			return fmt.Errorf("-routers %q: want numbers from 1 to 64, as 2,3,4,16", o.routers)
		}
		counts = append(counts, n)
	}
	fmt.Println("| routers | requests/s in all | CPU us a request, alone | with history | more | Redis CPU us a request " +
		"| messages/s in all | bytes a request | ms a request, alone | with history |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, n := range counts {
		if err := cost(ctx, o, n); err != nil {
			return err
		}
	}
	return nil
}

func cost(ctx context.Context, o *options, n int) (err error) {
	var sides []*side // for each build those alone, and those that share
	for _, bin := range []string{o.bin, o.beside} {
		for _, share := range []bool{false, true} {
			if bin == "" {
				continue
			}
			of := *o
			of.bin = bin
			st, err := newStage(&of, scene{"cost", n, share})
			if err != nil {
				return err
			}
			defer st.close()
			sides = append(sides, &side{stage: st})
		}
	}
	k := newTalkers(o.seed)
	for _, s := range sides { // connections, workers' metrics and the first prompts of each tenant
		s.load(ctx, k, o.rate, 2*time.Second)
		s.cpu, s.redisCPU, s.took, s.requests, s.busy = 0, 0, 0, 0, 0
		s.before, err = s.told()
		if err != nil {
			return err
		}
	}
	if o.profile != "" {
		profiled := make(chan error, 1)
		go func() { profiled <- sides[1].profile(filepath.Join(o.profile, fmt.Sprintf("%d.prof", n)), 2*o.seconds) }()
		defer func() { err = errors.Join(err, <-profiled) }()
	}
	for range o.seconds {
		for _, s := range sides {
			s.load(ctx, k, o.rate, slice)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for ; len(sides) > 0 && err == nil; sides = sides[2:] {
		err = row(n, sides[0], sides[1])
	}
	return err
}

// row prints the processor time of the routers that share, and of those that do not.
func row(n int, alone, shared *side) (err error) {
	shared.after, err = shared.told()
	if err != nil {
		return err
	}
	if bad := alone.failed.Load() + shared.failed.Load(); bad > 0 {
		return fmt.Errorf("%d requests failed", bad)
	}
	each := func(d time.Duration, s *side) float64 { return float64(d.Microseconds()) / float64(s.requests) }
	a, b := each(alone.cpu, alone), each(shared.cpu, shared)
	fmt.Printf("| %d | %.0f | %.1f | %.1f | %+.1f %% | %.1f | %.0f | %.0f | %.2f | %.2f |\n", n,
		float64(shared.requests)/shared.took.Seconds(), a, b, 100*(b/a-1), each(shared.redisCPU, shared),
		float64(shared.after.messages-shared.before.messages)/shared.took.Seconds(), // with the beats of the other's turns
		float64(shared.after.bytes-shared.before.bytes)/float64(shared.requests),
		each(alone.busy, alone)/1e3, each(shared.busy, shared)/1e3)
	return nil
}

// load sends requests for a while, each to a router by chance, waits for the answers, and adds up the time used.
func (s *side) load(ctx context.Context, k *talkers, rate float64, long time.Duration) {
	before, redis := s.routersTime(), s.redisTime()
	var sent sync.WaitGroup
	var busy atomic.Int64
	began, n := time.Now(), 0
	for ; time.Since(began) < long && ctx.Err() == nil; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(float64(n) / rate * float64(time.Second)))))
		to, body := s.routers[k.r.IntN(len(s.routers))].URL(), k.next()
		sent.Go(func() {
			at := time.Now()
			if err := s.post(ctx, to, body); err != nil {
				s.failed.Add(1)
			}
			busy.Add(int64(time.Since(at)))
		})
	}
	sent.Wait()
	s.took += time.Since(began)
	time.Sleep(60 * time.Millisecond) // until the others have received it
	s.requests += n
	s.busy += time.Duration(busy.Load())
	s.cpu += s.routersTime() - before
	s.redisCPU += s.redisTime() - redis
}

func (s *side) routersTime() (sum time.Duration) {
	for _, r := range s.routers {
		sum += r.CPU()
	}
	return sum
}

func (s *side) redisTime() time.Duration {
	if s.redis == nil {
		return 0
	}
	return s.redis.CPU()
}

func (s *side) post(ctx context.Context, to, body string) error {
	resp, err := s.request(ctx, to, strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = errors.New(resp.Status)
	}
	return err
}

// told sums up what the routers report that they have published.
func (s *side) told() (t told, err error) {
	for _, r := range s.routers {
		resp, err := s.client.Get("http://" + r.Admin + "/api/v1/routers")
		if err != nil {
			return t, err
		}
		var page struct {
			Pools []struct{ Told struct{ Messages, Bytes int } }
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil {
			return t, err
		}
		for _, p := range page.Pools {
			t.messages += p.Told.Messages
			t.bytes += p.Told.Bytes
		}
	}
	return t, nil
}

// profile writes where the first router spends its time.
func (s *side) profile(file string, seconds int) error {
	resp, err := s.client.Get(fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", "http://"+s.routers[0].Admin, seconds))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != 200 {
		return fmt.Errorf("profile: %s: %s", resp.Status, b)
	}
	return os.WriteFile(file, b, 0o600)
}

// talkers are chats under way: turns of some 400 tokens after a tenant's 2,000.
type talkers struct {
	r     *rand.Rand
	chats []strings.Builder
	begun int
}

func newTalkers(seed uint64) *talkers {
	return &talkers{r: rand.New(rand.NewPCG(seed, 3)), chats: make([]strings.Builder, 400)}
}

// next returns the body of the next turn of a chat.
func (k *talkers) next() string {
	b := &k.chats[k.r.IntN(len(k.chats))]
	if b.Len() > 4*4000 {
		b.Reset()
	}
	k.begun++
	if b.Len() == 0 {
		b.WriteString(text(fmt.Sprint("tenant ", k.r.IntN(80)), 2000))
	}
	b.WriteString(text(fmt.Sprint("turn ", k.begun), 400))
	return `{"model":"sim","max_tokens":8,"stream":true,"prompt":"` + b.String() + `"}`
}
