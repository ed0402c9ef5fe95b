package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// change is what a trainer sends to all workers, through the router, while two clients stream.
type change struct {
	name   string
	calls  []string // the last one has the workers go on
	ends   bool     // requests that run are ended; the clients send them again
	keeps  bool     // the engine keeps its KV cache
	either bool     // it does only where requests run
	still  bool     // nothing streams meanwhile
}

const updated = "/update_weight_version" // its body names the next version

var changes = []change{
	{name: "abort", calls: []string{"/pause", "/resume"}, ends: true},
	{name: "abort, no clear_cache", calls: []string{"/pause?clear_cache=false", "/resume"}, ends: true, keeps: true},
	{name: "wait", calls: []string{"/pause?mode=wait", "/resume"}},
	{name: "wait, no clear_cache", calls: []string{"/pause?mode=wait&clear_cache=false", "/resume"}, keeps: true},
	{name: "keep", calls: []string{"/pause?mode=keep", "/resume"}},
	{name: "keep, no clear_cache", calls: []string{"/pause?mode=keep&clear_cache=false", "/resume"}, keeps: true},
	{name: "sleep 1", calls: []string{"/sleep?level=1", "/wake_up"}, ends: true},
	{name: "sleep 1, mode wait", calls: []string{"/sleep?level=1&mode=wait", "/wake_up"}},
	{name: "sleep 0, mode keep", calls: []string{"/sleep?level=0&mode=keep", "/wake_up?tags=scheduling"}, keeps: true},
	{name: "reset, refused", calls: []string{"/reset_prefix_cache"}, either: true}, // where requests run
	{name: "reset", calls: []string{"/reset_prefix_cache?reset_running_requests=true"}},
	{name: "reset, nothing runs", calls: []string{"/reset_prefix_cache"}, still: true},
	{name: "keep, nothing runs", calls: []string{"/pause?mode=keep", "/resume"}, still: true},
	{name: "new weights", calls: []string{"/pause?mode=keep", updated, "/resume"}},
}

// checkTraining plays all changes under each strategy: prefixaware knows of the caches only what the router has sent
// and what it knows of the calls, kvaware also what the engines publish.
func checkTraining(ctx context.Context, o options, dir string) error {
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	g := &stage{options: o, dir: dir, ports: ports[2:]}
	defer g.close()
	if err := g.start(ctx, ports, setup{python: o.python, model: o.model, dir: dir, drain: time.Second, blocks: 1024,
		length: 8192, events: true}); err != nil {
		return err
	}
	failed, version := 0, 0
	for i := range 2 * len(o.strategies) {
		strategy := o.strategies[i/2]
		g.pool = ""
		if i%2 == 1 { // while all workers sleep requests are refused, unless they may wait
			g.pool = "queue = { wait_empty = \"2m\" }\n"
		}
		r, err := g.serve(ctx, 0, strategy, 0)
		if err != nil {
			return err
		}
		t := &trainer{router: r, workers: g.workers[:], version: version}
		err = t.call(ctx, updated) // so that there is a version, also of workers that were attached
		for k := range changes {
			c := &changes[k]
			if err != nil {
				break
			}
			if strings.HasPrefix(c.name, "sleep 1") != (i%2 == 1) {
				continue
			}
			figure, fault := t.play(ctx, c)
			word := "ok"
			if fault != nil {
				word, figure = "FAIL", fault.Error()
				failed++
			}
			fmt.Printf("%-5s %s: %-22s %s\n", word, strategy, c.name, figure)
			err = errors.Join(ctx.Err(), r.up(ctx, g.workers[:]))
		}
		version = t.version
		r.kill()
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d checks failed", failed)
	}
	return nil
}

// trainer sends changes, and knows the version of the weights.
type trainer struct {
	router  *router
	workers []*vllm
	version int
}

// call sends one call to all workers.
func (t *trainer) call(ctx context.Context, path string) error {
	var body any
	if path == updated {
		t.version++
		body = object{"new_version": fmt.Sprint(t.version)}
	}
	a := t.router.admin.post(ctx, "/api/v1/pools/main/each?path="+url.QueryEscape(path), body)
	if a.err != nil || a.status != http.StatusOK {
		return fmt.Errorf("%s: status %d, %w: %s", path, a.status, a.err, a.body)
	}
	return nil
}

// talk is a conversation in token ids.
type talk struct {
	ids []uint32

	prompt, cached, believed int // of its last turn
	weights                  string
	again                    int // so many turns were ended, and sent again
}

func newTalk(words int) *talk {
	t := &talk{}
	for _, b := range []byte(fresh(words)) {
		t.ids = append(t.ids, 100+uint32(b))
	}
	return t
}

// turn has the router answer so many tokens, which become part of the conversation.
func (t *talk) turn(ctx context.Context, c *client, tokens int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	a := c.asking("json").post(ctx, "/v1/completions", object{"model": "tiny", "prompt": t.ids, "max_tokens": tokens,
		"temperature": 0, "ignore_eos": true, "stream": true, "stream_options": object{"include_usage": true},
		"return_token_ids": true})
	t.weights = a.header.Get("X-Warmpath-Weights")
	if _, after, found := bytes.Cut(a.body, []byte("\n: X-Warmpath-Weights: ")); found {
		line, _, _ := bytes.Cut(after, []byte("\n"))
		t.weights = string(line)
	}
	if err := a.fault(); err != nil {
		return err
	}
	var d decision
	if err := json.Unmarshal([]byte(a.header.Get("X-Warmpath-Decision")), &d); err != nil {
		return fmt.Errorf("X-Warmpath-Decision: %w", err)
	}
	t.prompt, t.cached, t.believed = a.number("usage", "prompt_tokens"),
		max(0, a.number("usage", "prompt_tokens_details", "cached_tokens")), d.Believed
	if t.prompt != len(t.ids) {
		return fmt.Errorf("%d tokens were sent, the engine counts %d", len(t.ids), t.prompt)
	}
	a.each(func(v any) {
		ids, _ := dig(v, []any{"choices", 0, "token_ids"}).([]any)
		for _, id := range ids {
			n, _ := id.(float64)
			t.ids = append(t.ids, uint32(n))
		}
	})
	if got := len(t.ids) - t.prompt; got != tokens {
		return fmt.Errorf("%d tokens came of %d", got, tokens)
	}
	return nil
}

// The lengths of an answer while the calls are sent, and of the others; and how long the workers rest.
const (
	longTokens, shortTokens = 200, 8
	resting                 = 500 * time.Millisecond
)

// play sends a change while two clients stream. Two conversations that rest meanwhile show then what the change left in
// the caches, and the next turns of those two what became of theirs.
func (t *trainer) play(ctx context.Context, c *change) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	talks := []*talk{newTalk(40), newTalk(40), newTalk(40), newTalk(40)} // the first two rest
	for _, k := range talks {
		if err := k.turn(ctx, t.router.client, shortTokens); err != nil {
			return "", err
		}
	}
	before, after := t.version, t.version
	if slices.Contains(c.calls, updated) {
		after++
	}
	stop := make(chan struct{})
	faults := make([]error, 2)
	var clients sync.WaitGroup
	for i, k := range talks[2:] {
		if c.still {
			break
		}
		clients.Go(func() { faults[i] = k.stream(ctx, t.router.client, c.ends, stop, before, after) })
	}
	sent := t.change(ctx, c)
	close(stop)
	clients.Wait()
	if err := errors.Join(append(faults, sent)...); err != nil {
		return "", err
	}
	if err := t.router.up(ctx, t.workers); err != nil {
		return "", err
	}
	time.Sleep(resting) // the events of the last blocks come
	var said []string
	var wrong []error
	for i, k := range talks {
		if err := k.turn(ctx, t.router.client, shortTokens); err != nil {
			return "", err
		}
		said = append(said, fmt.Sprintf("%d/%d of %d", k.believed, k.cached, k.prompt))
		switch {
		case i >= 2 && before != after && k.believed == 0: // its turn before saw both weights: that is not counted
		case k.believed != k.cached:
			wrong = append(wrong, fmt.Errorf("conversation %d: believed %d, cached %d of %d", i, k.believed, k.cached, k.prompt))
		case k.weights != fmt.Sprint(after):
			wrong = append(wrong, fmt.Errorf("conversation %d: X-Warmpath-Weights: %q, not %d", i, k.weights, after))
		case c.either:
		case (i < 2 || c.still) && (k.cached > 0) != c.keeps, i >= 2 && !c.still && k.cached == 0:
			wrong = append(wrong, fmt.Errorf("conversation %d: the engine found %d of %d tokens", i, k.cached, k.prompt))
		}
	}
	figure := fmt.Sprintf("believed/cached of prompt: at rest %s, in use %s; %d streams were ended, and sent again",
		strings.Join(said[:2], ", "), strings.Join(said[2:], ", "), talks[2].again+talks[3].again)
	if err := errors.Join(wrong...); err != nil {
		return "", fmt.Errorf("%s\n%w", figure, err)
	}
	return figure, nil
}

// change sends the calls when both clients stream.
func (t *trainer) change(ctx context.Context, c *change) error {
	for !c.still {
		n := 0.
		for _, w := range t.workers {
			r, err := w.running(ctx)
			if err != nil {
				return err
			}
			n += r
		}
		if n >= 2 {
			break
		}
		if ctx.Err() != nil {
			return errors.New("the clients do not stream")
		}
	}
	for i, path := range c.calls {
		if i > 0 {
			time.Sleep(resting)
		}
		if err := t.call(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// stream has turns of the conversation until stop. A turn that the change ends is sent again, once.
func (k *talk) stream(ctx context.Context, c *client, ends bool, stop chan struct{}, before, after int) error {
	for {
		err := k.turn(ctx, c, longTokens)
		switch {
		case err != nil && ends && k.again == 0:
			k.again++
		case err != nil:
			return err
		case k.weights != fmt.Sprint(before) && k.weights != fmt.Sprint(after) &&
			k.weights != fmt.Sprintf("%d-%d", before, after):
			return fmt.Errorf("X-Warmpath-Weights: %q, between %d and %d", k.weights, before, after)
		}
		select {
		case <-stop:
			if err == nil {
				return nil
			}
		default:
		}
	}
}
