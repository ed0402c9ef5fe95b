package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// traffic is requests with their times, in the workers' seconds.
type traffic struct {
	name     string
	requests []request
}

type request struct {
	at     float64
	prompt string
	answer int
}

// text returns so many tokens of text, of 4 bytes each, the same for the same name.
func text(name string, tokens int) string {
	unit := fmt.Sprintf("%-16.16s", name)
	var b strings.Builder
	for i := 0; b.Len() < 4*tokens; i++ {
		fmt.Fprintf(&b, "%s%08d", unit, i*7919%99999989)
	}
	return b.String()[:4*tokens]
}

// chats are chats of up to so many turns that share the beginnings of tenants.
type chats struct {
	tenants, system, turn, turns int // system and turn in tokens
	rate                         float64
}

// requests returns n of them, in the order of their times.
func (c chats) requests(r *rand.Rand, n int) (all []request) {
	at, tenants, system, turn, turns, rate := 0.0, c.tenants, c.system, c.turn, c.turns, c.rate
	for i := 0; len(all) < n; i++ {
		at += r.ExpFloat64() / rate * float64(turns+1) / 2
		prompt, when := text(fmt.Sprint("tenant ", r.IntN(tenants)), system), at
		for k := range 1 + r.IntN(turns) {
			prompt += text(fmt.Sprintf("chat %d.%d", i, k), turn)
			all = append(all, request{at: when, prompt: prompt, answer: 40})
			when += 4 + 8*r.Float64()
		}
	}
	slices.SortFunc(all, func(a, b request) int {
		if a.at < b.at {
			return -1
		}
		return 1
	})
	return all
}

// tenantsRate is the requests in a second of the workers.
const tenantsRate = 14

// generators returns three traffics: many tenants with little in common, more work than the workers can do, and bursts
// of long documents among chats.
func generators(o *options) []traffic {
	r := rand.New(rand.NewPCG(o.seed, 5))
	tenants := traffic{"tenants",
		chats{tenants: 80, system: 2000, turn: 400, turns: 4, rate: tenantsRate}.requests(r, o.requests)}
	overload := traffic{"overload",
		chats{tenants: 24, system: 3000, turn: 1500, turns: 6, rate: 18}.requests(r, o.requests)}
	bursts := traffic{"bursts", chats{tenants: 24, system: 2000, turn: 600, turns: 4, rate: 9}.requests(r, o.requests*3/4)}
	last := bursts.requests[len(bursts.requests)-1].at
	for k := range o.requests / 4 { // eight questions on each document, all at once
		d := k / 8
		at := last * float64(d+1) / float64(o.requests/32+2)
		bursts.requests = append(bursts.requests, request{at: at + .05*float64(k%8),
			prompt: text(fmt.Sprint("document ", d), 12_000) + text(fmt.Sprint("question ", k), 100), answer: 40})
	}
	slices.SortFunc(bursts.requests, func(a, b request) int {
		if a.at < b.at {
			return -1
		}
		return 1
	})
	return []traffic{tenants, overload, bursts}
}

// outcome is what a client saw of one request; times are the workers'.
type outcome struct {
	router         int // that was asked
	at, ttft       float64
	late           float64 // by which the client sent it
	prompt, cached int
	failed         string
}

// play sends a traffic, each request to a router by chance, and calls during, if given, as each is due.
func play(ctx context.Context, st *stage, tr traffic, speed float64, during func(i int)) []outcome {
	all := make([]outcome, len(tr.requests))
	var sent sync.WaitGroup
	r := rand.New(rand.NewPCG(st.o.seed, 9))
	began := time.Now()
	for i, q := range tr.requests {
		due := began.Add(time.Duration(q.at / speed * float64(time.Second)))
		select {
		case <-ctx.Done():
			return all[:i]
		case <-time.After(time.Until(due)):
		}
		if during != nil {
			paused := time.Now()
			during(i)
			pause := time.Since(paused)
			began, due = began.Add(pause), due.Add(pause)
		}
		router := r.IntN(len(st.routers))
		to := st.routers[router].URL()
		late := time.Since(due).Seconds() * speed
		sent.Go(func() {
			all[i] = st.ask(ctx, to, q, speed)
			all[i].at, all[i].late, all[i].router = q.at, late, router
		})
	}
	sent.Wait()
	return all
}

func (st *stage) ask(ctx context.Context, to string, q request, speed float64) (o outcome) {
	body, _ := json.Marshal(map[string]any{"model": "sim", "prompt": q.prompt, "max_tokens": q.answer, "stream": true,
		"stream_options": map[string]bool{"include_usage": true}})
	began := time.Now()
	resp, err := st.request(ctx, to, bytes.NewReader(body))
	if err != nil {
		o.failed = err.Error()
		return o
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 200))
		o.failed = fmt.Sprint(resp.StatusCode, " ", string(b))
		return o
	}
	lines := bufio.NewScanner(resp.Body)
	done := false
	for lines.Scan() {
		line, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if o.ttft == 0 {
			o.ttft = time.Since(began).Seconds() * speed
		}
		if strings.Contains(line, `"prompt_tokens"`) {
			var u struct {
				Usage struct {
					Prompt  int `json:"prompt_tokens"`
					Details struct {
						Cached int `json:"cached_tokens"`
					} `json:"prompt_tokens_details"`
				}
			}
			_ = json.Unmarshal([]byte(line), &u)
			o.prompt, o.cached = u.Usage.Prompt, u.Usage.Details.Cached
		}
		done = done || line == "[DONE]"
	}
	if !done {
		o.failed = "cut short"
	}
	return o
}

func (st *stage) request(ctx context.Context, to string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, "POST", to+"/v1/completions", body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return st.client.Do(req)
}

// figures sums outcomes up.
func figures(all []outcome, into map[string]any) map[string]any {
	var times []float64
	sum, late, prompt, cached, failed := 0.0, 0.0, 0, 0, 0
	for _, o := range all {
		late = max(late, o.late)
		if o.failed != "" {
			failed++
			into["first_error"] = o.failed
			continue
		}
		times = append(times, o.ttft)
		sum += o.ttft
		prompt += o.prompt
		cached += o.cached
	}
	slices.Sort(times)
	n := max(1, len(times))
	into["client_late_max"] = late
	into["requests"], into["failed"] = len(all), failed
	if len(times) > 0 {
		into["mean_ttft"], into["p90_ttft"] = sum/float64(n), times[len(times)*9/10]
		into["hit_rate"] = float64(cached) / float64(max(1, prompt))
	}
	return into
}
