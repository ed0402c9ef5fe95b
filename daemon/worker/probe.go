package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"syscall"
	"time"
)

const (
	maxMetrics = 8 << 20 // a page is about 60 KB
	maxModels  = 4 << 20
	listEvery  = 5                      // health checks between model listings
	minGap     = 200 * time.Millisecond // between health checks that failing requests ask for
)

// watch starts w's loops. The caller holds p.mu, and p.run is set.
func (p *Pool) watch(w *Worker) {
	ctx, stop := context.WithCancel(p.run)
	w.stop = stop
	p.loops.Go(func() { p.healthLoop(ctx, w) })
	p.loops.Go(func() { p.scrapeLoop(ctx, w) })
}

// healthLoop checks at once and then every interval, and asks for the models on every fifth good check and on
// the first after a bad one.
func (p *Pool) healthLoop(ctx context.Context, w *Worker) {
	was := false
	for n := 0; ctx.Err() == nil; n++ {
		ok := p.check(ctx, w)
		if ok && (!was || n%listEvery == 0) {
			p.list(ctx, w)
		}
		was = ok
		gap := min(minGap, p.conf.HealthInterval/2)
		sleep(ctx, gap, nil)
		sleep(ctx, jitter(p.conf.HealthInterval)-gap, w.kick)
	}
}

func (p *Pool) scrapeLoop(ctx context.Context, w *Worker) {
	for ctx.Err() == nil {
		if p.isUp(w) {
			p.scrape(ctx, w)
			sleep(ctx, jitter(p.conf.ScrapeInterval), nil)
		} else {
			sleep(ctx, min(minGap, p.conf.ScrapeInterval), nil) // soon after it came up
		}
	}
}

// jitter keeps probes of many workers from falling together.
func jitter(d time.Duration) time.Duration { return d*9/10 + rand.N(d/5+1) }

func sleep(ctx context.Context, d time.Duration, kick <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-kick:
	case <-t.C:
	}
}

func (p *Pool) isUp(w *Worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.health.state == up
}

// check asks /health and reports whether it is good. Any answer below 500 is: a server without that path is no dead one.
func (p *Pool) check(ctx context.Context, w *Worker) bool {
	status, _, err := p.get(ctx, w.url+"/health", p.conf.HealthTimeout, 1<<10)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.checked(w, time.Now(), err.Error(), errors.Is(err, syscall.ECONNREFUSED))
	case status >= 500:
		p.checked(w, time.Now(), fmt.Sprintf("/health answers %d", status), true)
	default:
		p.checked(w, time.Now(), "", false)
		return true
	}
	return false
}

func (p *Pool) list(ctx context.Context, w *Worker) {
	l, entries, err := p.models(ctx, w)
	if err == nil {
		p.listed(w, l, entries)
	} else if ctx.Err() == nil {
		p.failed(w, err)
	}
}

func (p *Pool) failed(w *Worker, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.health.note(err.Error(), time.Now())
}

// get reads at most limit bytes. Its error names no URL: that may hold a password.
func (p *Pool) get(ctx context.Context, u string, d time.Duration, limit int64) (int, []byte, error) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return 0, nil, errors.New("worker: not a URL")
	}
	answer, err := p.conf.Client.Do(r)
	if err != nil {
		return 0, nil, bare(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, limit))
	if err != nil {
		return 0, nil, bare(err)
	}
	return answer.StatusCode, b, nil
}

func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
