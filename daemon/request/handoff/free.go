package handoff

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/adapters"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// kv is what a prefiller keeps for a decoder.
type kv struct {
	of     *leg
	handed []byte
	meant  *worker.Worker // that decoder
}

// keep records KV that some decoder is to read, so that the prefiller frees it.
func (p *Pairing) keep(handed []byte) {
	p.unread = append(p.unread, kv{of: p.first, handed: handed, meant: p.meant})
}

// Free has the prefillers free what no decoder has read for sure. A second read does no harm.
func (p *Pairing) Free() {
	if p == nil {
		return
	}
	if p.handed != nil {
		p.keep(p.handed)
	}
	pool, j := p.req.Pool, p.req.Journal
	for _, u := range p.unread {
		to := p.decoder
		if len(p.rule.Same) > 0 { // which may have other labels
			to = u.meant
		}
		work := new(account.Work) // which reads the body
		p.req.In.Account.Begin(work, true)
		go func() {
			defer func() { work.End(time.Now()) }()
			j.Prefilled(&u.of.in, pool, u.of.free(to, pool, u.handed), "")
		}()
	}
}

// maxFreeing bounds how many requests at a time only have a prefiller free its memory.
const maxFreeing = 256

// freeing counts them.
var freeing atomic.Int32

// free has a decoder read what the prefiller keeps for a request whose client has left, or that the decoder has
// refused: else the memory is lost until the prefiller gives up. The answer of one token is thrown away. A decoder that
// is busy, fails or has gone is followed by the others, until one has read it. That a decoder answers 500 may mean that
// the KV is gone, or anything else.
func (l *leg) free(to *worker.Worker, p *epoch.Pool, handed []byte) journal.Prefilled {
	if l.dropped() && handed == nil { // else its answer came before its end
		return journal.PrefillDropped
	}
	if handed == nil || !p.Pairing.Connector.Pins() {
		return l.result
	}
	defer freeing.Add(-1)
	if freeing.Add(1) > maxFreeing {
		return journal.PrefillPinned
	}
	prefiller, computed, end := l.inner.By().Key(), time.Now(), journal.PrefillPinned
	until, missing := computed.Add(freeFor), 0 // decoders that do not have the model
	for wait, n := freeAgain, 1; ; wait, n = min(2*wait, 20*freeAgain), n+1 {
		switch l.readKept(to, p, handed, max(readWithin, 2*wait)) {
		case http.StatusOK:
			return journal.PrefillFreed
		case http.StatusInternalServerError:
			end = journal.PrefillFreed // by the time that no decoder is asked any more
			if p.Workers.Settled(prefiller, computed) && !p.Workers.Survived(prefiller, computed) {
				return end
			}
			if by := time.Now().Add(failsFor); by.Before(until) {
				until = by
			}
		case http.StatusNotFound:
			missing++
		case 0, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusRequestTimeout, 529,
			http.StatusBadGateway, http.StatusGatewayTimeout:
		default:
			return journal.PrefillPinned
		}
		all := p.Workers.Reachable(p.Pairing.Answering(l.in.Caller.Workers))
		if missing > len(all) || time.Now().Add(wait).After(until) {
			return end
		}
		time.Sleep(wait)
		if len(all) > 0 && len(p.Pairing.Same) == 0 { // else others may hold another revision of the model
			to = all[n%len(all)]
		}
	}
}

// A decoder is asked again to read what the prefiller keeps, as long as most prefillers keep it. An engine that fails
// may recover for failsFor; by then 500 has meant that the KV is gone.
const (
	freeAgain = 100 * time.Millisecond
	freeFor   = 30 * time.Second
	failsFor  = 3 * time.Second
)

// readWithin bounds how long one decoder may take to read it at first. A slow one has longer later. One that hangs
// keeps no other from reading it, and one with a long queue frees it when the request ends before its turn.
const readWithin = time.Second

// readKept has a decoder read what the prefiller keeps, under an id of its own, and returns the status of its answer;
// 0 = there is none. If the model is an adapter, the decoder loads it before.
func (l *leg) readKept(by *worker.Worker, p *epoch.Pool, handed []byte, within time.Duration) int {
	to := p.Clients.Get(by.URL())
	if to == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if p.Loader != nil {
		unused, err := p.Loader.Load(ctx, by, adapters.Want{Name: l.in.Seen.Model, Caller: l.in.Caller.Name,
			Until: time.Now().Add(within)})
		if err != nil {
			return 0
		}
		defer unused()
	}
	t := pair.Transfer{Connector: p.Pairing.Connector, Kind: l.in.Endpoint.Kind}
	resp, err := to.Do(ctx, &upstream.Request{Method: l.in.Method, Path: l.in.Path, Body: t.Free(l.wants, handed),
		Header: message.WorkerHeader(nil, &l.in, rand.Text(), p, nil), At: time.Now()})
	if err != nil {
		return 0
	}
	defer resp.Close()
	if _, err := io.Copy(io.Discard, resp); err != nil && resp.Status == http.StatusOK {
		return 0
	}
	return resp.Status
}
