package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// The soak's further pools: prompts that are computed by workers of their own, and adapters that are loaded on demand.
// Their clients leave at any moment, or stay.
const (
	pairedRate  = 15 // requests a second
	adapterRate = 15
	adapters    = 12 // names, for workers that have room for four each
	maxAdapters = 4
	leavesIn    = 400 * time.Millisecond
)

// further are simulated workers of these pools, and what their clients saw.
type further struct {
	prefill, all vllmsim.Fleet
	tables       string // of the pools
	sent, left   atomic.Int64
	good, bad    atomic.Int64
}

func startFurther() (*further, error) {
	f := &further{}
	start := func(c vllmsim.Config) (url string, err error) {
		c.Speed = 10
		w, err := vllmsim.New(c)
		if err != nil {
			return "", err
		}
		f.all = append(f.all, w)
		if c.Role == vllmsim.RolePrefill {
			f.prefill = append(f.prefill, w)
		}
		return w.URL(), w.Start("127.0.0.1:0")
	}
	f.tables = "[[pools]]\nname = \"pairs\"\nmodels = [\"paired\"]\nhealth_interval = \"300ms\"\nmax_in_flight = 8\n" +
		"queue = { max_requests = 100, wait = \"3s\" }\n" +
		"[pools.disaggregation]\nconnector = \"nixl\"\nrule = \"threshold\"\nthreshold = 200\n"
	for i := range 4 {
		role := []string{vllmsim.RolePrefill, vllmsim.RoleDecode}[i%2]
		if _, err := start(vllmsim.Config{ID: fmt.Sprint("paired", i), Models: []string{"paired"}, Role: role,
			Connector: vllmsim.ConnectorNIXL}); err != nil {
			return f, err
		}
		f.tables += fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"paired%d\"\nrole = %q\n", f.all[i].URL(), i, role)
	}
	f.tables += fmt.Sprintf("[[pools]]\nname = \"adapters\"\nmodels = [\"base\", \"lora-*\"]\n"+
		"health_interval = \"300ms\"\n[pools.adapters]\nsource = \"/adapters/{name}\"\nmax = %d\n", maxAdapters)
	for i := range 2 {
		if _, err := start(vllmsim.Config{ID: fmt.Sprint("lora", i), Models: []string{"base"}, MaxLoras: maxAdapters,
			LoraLoad: .5}); err != nil {
			return f, err
		}
		f.tables += fmt.Sprintf("[[pools.workers]]\nurl = %q\nid = \"lora%d\"\n", f.all[4+i].URL(), i)
	}
	return f, nil
}

func (f *further) close() {
	for _, w := range f.all {
		w.Close()
	}
}

// play sends requests to both pools until ctx ends. Half of the clients leave within leavesIn.
func (f *further) play(ctx context.Context, addr string) {
	var clients sync.WaitGroup
	defer clients.Wait()
	for i := 0; ctx.Err() == nil; i++ {
		text, model := strings.Repeat(fmt.Sprintf("word%d ", i), 50+rand.IntN(1500)), "paired"
		if i%(pairedRate+adapterRate) >= pairedRate {
			text, model = "hello", fmt.Sprint("lora-", rand.IntN(adapters))
		}
		body := fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":16,"stream":%v}`, model, text, i%2 == 0)
		clients.Go(func() { f.ask(addr, body, rand.IntN(2) == 0, []string{keyFree, keyLimited}[rand.IntN(2)]) })
		time.Sleep(time.Second / (pairedRate + adapterRate))
	}
}

// ask sends one request. If it leaves, it does so at any moment of its first part.
func (f *further) ask(addr, body string, leaves bool, key string) {
	ctx, leave := context.WithTimeout(context.Background(), time.Minute)
	defer leave()
	if leaves {
		timer := time.AfterFunc(time.Duration(rand.Int64N(int64(leavesIn))), leave)
		defer timer.Stop()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/completions", strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key+"-0123456789")
	if leaves {
		f.left.Add(1)
	} else {
		f.sent.Add(1)
	}
	resp, err := furtherClient.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	switch {
	case leaves:
	case err == nil && resp.StatusCode == 200:
		f.good.Add(1)
	default:
		f.bad.Add(1)
	}
}

// furtherClient opens a connection a request, as one that a client has left cannot be used again.
var furtherClient = http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// kept returns why a prefiller keeps blocks, or has lost some, nil if none does.
func (f *further) kept() error { return f.prefill.Stranded() }

// String says what the clients saw.
func (f *further) String() string {
	return fmt.Sprintf("pairs and adapters: %d answered, %d refused or broken, %d left", f.good.Load(), f.bad.Load(),
		f.left.Load())
}
