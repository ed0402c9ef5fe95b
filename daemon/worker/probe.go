package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
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
	downEvery  = 500 * time.Millisecond // between checks of one that is not up: it is used again within 2 s of being able to
	leaveEvery = time.Second            // between scrapes of one that told it is going: a new process ends that
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
		c := p.conf()
		every := c.HealthInterval
		if is, _ := p.isUp(w); !is {
			every = min(every, downEvery)
		}
		gap := min(minGap, every/2)
		sleep(ctx, gap, nil, nil)
		sleep(ctx, jitter(every)-gap, w.kick, c.replaced)
	}
}

func (p *Pool) scrapeLoop(ctx context.Context, w *Worker) {
	for ctx.Err() == nil {
		c := p.conf()
		switch is, goes := p.isUp(w); {
		case !is:
			sleep(ctx, min(minGap, c.ScrapeInterval), nil, nil) // soon after it came up
		case goes:
			p.scrape(ctx, w)
			sleep(ctx, jitter(min(leaveEvery, c.ScrapeInterval)), nil, nil)
		default:
			p.scrape(ctx, w)
			sleep(ctx, jitter(c.ScrapeInterval), w.look, c.replaced)
		}
	}
}

// jitter keeps probes of many workers from falling together.
func jitter(d time.Duration) time.Duration { return d*9/10 + rand.N(d/5+1) }

// sleep waits for d, or until one of the others says so. Any of them may be nil.
func sleep(ctx context.Context, d time.Duration, kick, replaced <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-kick:
	case <-replaced:
	case <-t.C:
	}
}

// isUp also reports whether w told that it is leaving.
func (p *Pool) isUp(w *Worker) (is, goes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.health.state == up, w.breaker.cause == leaving
}

// check asks /health on a new connection and reports whether it is good. Any answer below 500 is: a server without that path is
// no dead one.
func (p *Pool) check(ctx context.Context, w *Worker) bool {
	c := p.conf()
	status, _, err := p.get(ctx, c.fresh, w.url+"/health", c.HealthTimeout, 1<<10)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // this process has no descriptor left; that says nothing of w
		p.failed(w, err, byHealth)
	case err != nil:
		p.checked(w, time.Now(), "/health: "+err.Error(), errors.Is(err, syscall.ECONNREFUSED))
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
		p.failed(w, err, byModels)
	}
}

func (p *Pool) failed(w *Worker, err error, by source) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.health.note(err.Error(), time.Now(), by)
}

// get reads at most limit bytes. Its error names no URL: that may hold a password.
func (p *Pool) get(ctx context.Context, client *http.Client, u string, d time.Duration, limit int64) (int, []byte, error) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return 0, nil, errors.New("worker: not a URL")
	}
	if key := p.conf().Key; key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, bare(err, d)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, limit))
	if err != nil {
		return 0, nil, bare(err, d)
	}
	return answer.StatusCode, b, nil
}

// bare puts an error into words that name no address, which a client may see on /ready. limit is the time that the answer had.
func bare(err error, limit time.Duration) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("%s: %w", e.Op, e.Err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", limit)
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
