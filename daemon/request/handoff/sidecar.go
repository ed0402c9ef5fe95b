package handoff

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// tell names a prefiller to the sidecar of the decoder. If that prefiller hangs, the decoder waits for it in vain.
func (p *Pairing) tell(ctx context.Context, a *attempt.Attempt, l *leg) bool {
	defer p.note(l)
	if !l.choose(ctx) || !l.hold() {
		l.end()
		return false
	}
	p.sidecar = l
	l.streams, l.model = p.req.Read.Req.Stream, strings.Clone(p.req.Read.Req.Model)
	l.watch(func() {
		l.failed.Store(true)
		if a.Unfill() {
			l.trip.Overdue(time.Now(), l.limit.Limit)
		}
	})
	p.out.Header = withPrefiller(p.out.Header, l.address())
	return true
}

// withPrefiller adds the field that names a prefiller to a sidecar. The field of the rank stays the last one.
func withPrefiller(header []upstream.Field, address string) []upstream.Field {
	return slices.Insert(header, 0, upstream.Field{Name: pair.HeaderPrefiller, Value: address})
}

// End ends what a sidecar has a prefiller do, once the second leg has given its answer or has failed.
func (p *Pairing) End() {
	if p.sidecar != nil {
		p.sidecar.letGo()
		p.sidecar.end()
		p.sidecar = nil
	}
}

// hold counts the prompt at the prefiller, which gets it from somebody else.
func (l *leg) hold() bool {
	l.limit = route.Prefills(l.choice)
	l.limit.BeSure(l.req.Pool.HeaderTimeout)
	now := time.Now()
	to, ok := l.choice.Next(now)
	l.held = ok && l.choice.Send(&l.trip, to, nil, now)
	if !l.held {
		l.inner.Release() // with its turn of the queue
	} else {
		l.inner.Charge(&l.trip, to, now)
		l.in.Account.Take(&l.place, account.Worker, 1)
		l.result, l.by = journal.PrefillDone, to.Worker
	}
	return l.held
}

// watch calls lost if the prefiller hangs, or if a stream has not begun in time. The latter may be the decoder's fault,
// so half of that time is given to a prompt of one word, which the prefiller gets behind the other one. An answer in
// one piece does not show when its prompt was computed: its prefiller gets the word after a while, unless it shows
// otherwise that it works on.
func (l *leg) watch(lost func()) {
	l.sent = time.Now()
	if l.streams {
		l.clock = time.AfterFunc(l.limit.Limit/2, func() {
			l.sound(l.sent)
			select {
			case <-l.ctx.Done():
			case <-time.After(time.Until(l.sent.Add(l.limit.Limit))):
				lost()
			}
		})
		return
	}
	l.clock = time.AfterFunc(soundAfter, func() {
		for since := l.sent; l.ctx.Err() == nil; since = since.Add(soundAfter) {
			if l.trip.WorksOn(since) {
				time.Sleep(soundAfter)
				continue
			}
			if !l.sound(since) && l.ctx.Err() == nil {
				lost()
			}
			return
		}
	})
}

// soundAfter is half of the least limit, so that the answer to a word can come before that.
const soundAfter = 250 * time.Millisecond

// sound reports whether the prefiller answers a prompt of one word before the limit is over from that time on, whatever
// it says.
func (l *leg) sound(since time.Time) bool {
	ctx, cancel := context.WithDeadline(l.ctx, since.Add(l.limit.Limit))
	defer cancel()
	pool := l.req.Pool
	client := pool.Clients.Get(l.by.URL())
	if client == nil {
		return true
	}
	model, _ := json.Marshal(l.model) // a string cannot fail
	resp, err := client.Do(ctx, &upstream.Request{Method: http.MethodPost, Path: "/v1/completions", At: time.Now(),
		Body:   fmt.Appendf(nil, `{"model":%s,"prompt":"a","max_tokens":1}`, model),
		Header: message.PinRank(message.WorkerHeader(nil, &l.in, rand.Text(), pool, nil), l.by.RankHeader())})
	if err != nil {
		return false
	}
	defer resp.Close()
	l.trip.Flow(time.Now())
	if since == l.sent && !l.streams {
		l.limit.Took(time.Since(since))
	}
	return true
}

// letGo ends what hold counts.
func (l *leg) letGo() {
	if l.held {
		now, o := time.Now(), judge.Outcome{Kind: judge.Canceled, Partly: true}
		if l.read {
			o = judge.Outcome{Kind: judge.Answered}
		}
		if l.read && l.streams { // else it is the end of the answer
			l.trip.FirstByte(now)
		}
		if took := now.Sub(l.sent); l.read && (l.streams || took < soundAfter) {
			l.limit.Took(took)
		}
		l.trip.End(&o, route.End{At: now})
		l.place.Release()
		l.inner.Release()
	}
}

// address is what a sidecar is told of the prefiller that was chosen, as HOST:PORT.
func (l *leg) address() string {
	u, err := url.Parse(l.inner.Chosen().URL())
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
