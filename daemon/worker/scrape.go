package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"
)

func (p *Pool) models(ctx context.Context, w *Worker) (*listing, []json.RawMessage, error) {
	status, b, err := p.get(ctx, p.conf().Client, w.url+"/v1/models", p.conf().HealthTimeout, maxModels)
	if err != nil {
		return nil, nil, fmt.Errorf("/v1/models: %w", err)
	}
	if status != http.StatusOK {
		return nil, nil, fmt.Errorf("/v1/models answers %d", status)
	}
	return parseModels(b)
}

func (p *Pool) scrape(ctx context.Context, w *Worker) {
	status, b, err := p.get(ctx, p.conf().Client, w.scrap, p.conf().ScrapeInterval, maxMetrics)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("answers %d", status)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		p.failed(w, fmt.Errorf("/metrics: %w", err), byMetrics)
	default:
		p.scraped(w, parseMetrics(b), time.Now())
	}
}

// scraped takes a page's figures. A worker that was killed and came back between two health checks shows only by its
// process' start.
func (p *Pool) scraped(w *Worker, m metrics, now time.Time) {
	p.mu.Lock()
	if w.gone {
		p.mu.Unlock()
		return
	}
	var events []event
	if was := w.process; was != 0 && m.process != 0 && math.Abs(m.process-was) > 1 {
		w.forget()
		w.totals.restarts++
		w.breaker.reset()
		w.health.born, w.health.streak = p.sec(now), 0
		p.startSlow(w, p.sec(now))
		p.panicked = false
		events = append(events, event{w: w, kind: restarted})
	}
	if m.process != 0 {
		w.process = m.process
	}
	if w.scraped > 0 {
		p.told(w, w.metrics, m, p.sec(now))
	}
	w.metrics, w.scraped = m, p.sec(now)
	if m.block > 0 {
		w.block.Store(int32(min(m.block, math.MaxInt32)))
	}
	w.health.good(byMetrics)
	events = append(events, w.resize()...)
	p.mu.Unlock()
	p.tell(events...)
}
