package admission

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// A request may end the engine that gets it. Its client, or this router, repeats it, and it ends the next one. So each
// body with which a worker's connection was lost is remembered for a while by its hash, with the worker. Two workers
// whose process has not lived on are enough: no further one gets the request.
const (
	MaxDeaths    = 2
	LethalFor    = 5 * time.Minute
	maxSuspected = 4096 // bodies: a worker that dies takes some hundred requests with it
)

// Lethal remembers which bodies came with the end of a worker. It is safe for concurrent use.
type Lethal struct {
	seed maphash.Seed
	some atomic.Bool // there may be an entry: otherwise no hash is needed

	mu     sync.Mutex // guards all below
	bodies map[uint64]*ends
	order  []uint64 // of bodies, the oldest first
}

// ends is when a body's workers were lost.
type ends struct{ lost []Loss }

// Loss is a connection that a worker lost before the end of its answer.
type Loss struct {
	Pool     *worker.Pool
	Worker   uint64 // its Key
	Sent, At time.Time

	noted time.Time // At may be later: see DyingFor
}

// NewLethal makes one that remembers nothing yet.
func NewLethal() *Lethal { return &Lethal{seed: maphash.MakeSeed(), bodies: map[uint64]*ends{}} }

// Note keeps what a request is known by, whose body is dropped before its answer ends.
func (l *Lethal) Note(in *message.Inbound) { in.Hash = l.hash(in) }

func (l *Lethal) hash(in *message.Inbound) uint64 {
	if in.Hash != 0 {
		return in.Hash
	}
	var h maphash.Hash
	h.SetSeed(l.seed)
	_, _ = h.WriteString(in.Path) // never fails
	_, _ = h.Write(in.Body)
	return h.Sum64()
}

// Lose records that a worker lost the connection of a request. A worker may have the same body several times, as of the
// samples of one prompt, and loses them all when its process ends: that is one loss.
func (l *Lethal) Lose(in *message.Inbound, x Loss) {
	h := l.hash(in)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.bodies[h]
	if e == nil {
		if len(l.order) == maxSuspected {
			delete(l.bodies, l.order[0])
			l.order = l.order[1:]
		}
		e = new(ends)
		l.bodies[h] = e
		l.order = append(l.order, h)
	}
	l.some.Store(true)
	if slices.ContainsFunc(e.lost, func(o Loss) bool {
		return o.Pool == x.Pool && o.Worker == x.Worker && x.Sent.Before(o.noted)
	}) {
		return
	}
	x.noted = time.Now()
	e.lost = append(e.lost, x)
	if len(e.lost) > MaxDeaths {
		e.lost = e.lost[1:]
	}
}

// DyingFor is how long a process whose engine is dead may still answer its health checks.
const DyingFor = time.Second

// judged bounds how long a request waits until health checks have shown whether its workers lived on: a lost connection
// asks for a check at once, and a late one takes two seconds.
const judged = 3 * time.Second

// Await returns how many workers have ended with this request. While maxDeaths may have, and a health check is still to
// show it, await waits.
func (l *Lethal) Await(ctx context.Context, in *message.Inbound, now time.Time) int8 {
	for end := now.Add(judged); ; now = time.Now() {
		n := l.Deaths(in, now)
		if n < MaxDeaths || now.After(end) || ctx.Err() != nil || l.settled(in) {
			return n
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Deaths returns how many workers have ended with this request, or may have. One that has lived on lost the connection
// alone.
func (l *Lethal) Deaths(in *message.Inbound, now time.Time) (n int8) {
	if !l.Suspects() {
		return 0
	}
	for _, x := range l.losses(in, now) {
		if now.Sub(x.At) < LethalFor && !x.Pool.Survived(x.Worker, x.At) {
			n++
		}
	}
	return n
}

// Suspects reports whether any body may have come with the end of a worker.
func (l *Lethal) Suspects() bool { return l.some.Load() }

// settled reports whether health checks have shown of each loss what became of the worker.
func (l *Lethal) settled(in *message.Inbound) bool {
	for _, x := range l.losses(in, time.Now()) {
		if !x.Pool.Settled(x.Worker, x.At) {
			return false
		}
	}
	return true
}

// losses returns the losses of a request.
func (l *Lethal) losses(in *message.Inbound, now time.Time) []Loss {
	h := l.hash(in)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	if e := l.bodies[h]; e != nil {
		return slices.Clone(e.lost)
	}
	return nil
}

// Acquit removes a request that a worker has answered.
func (l *Lethal) Acquit(in *message.Inbound) {
	h := l.hash(in)
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.bodies[h]; e != nil {
		e.lost = e.lost[:0]
	}
}

// expire removes old entries. An entry that was added to since stays a little longer. The caller holds l.mu.
func (l *Lethal) expire(now time.Time) {
	for len(l.order) > 0 {
		e := l.bodies[l.order[0]]
		if n := len(e.lost); n > 0 && now.Sub(e.lost[n-1].At) < LethalFor {
			return
		}
		delete(l.bodies, l.order[0])
		l.order = l.order[1:]
	}
	l.some.Store(false)
}
