package front

import (
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Where something bounds what a worker has at a time, a place is taken until the router has read the answer. So a
// client that does not take what comes would hold the place for as long as it likes. When a write to a client has not
// got on for a while, the rest of the answer is read ahead of the client, into memory that is bounded by answer and
// divided by client. Once the worker has sent all, its place is free. A client that has more to take, and takes less
// than the least rate, is cut off.
const (
	stuckFor  = 250 * time.Millisecond // at least, for a write; at most twice that
	mostAhead = 4 << 20                // of one answer: some 15,000 events of one token
	allAhead  = 128 << 20              // of all answers, divided by client
	aheadRoom = 16 << 10               // of a piece
)

// errTooSlow ends an answer whose client takes it too slowly.
var errTooSlow = errors.New("front: the client takes its answer too slowly")

// What a relay does.
const (
	relayReads  uint32 = iota // it waits for the worker
	relayWrites               // it waits for the client
	relayAhead                // likewise, and the rest of the answer is read meanwhile
)

// relays has the relays of a process, and finds those that are stuck in a write. Its zero value is ready.
type relays struct {
	shared account.Shared // what is read ahead

	mu    sync.Mutex // guards all below
	seen  map[*relay]uint32
	ticks bool
}

// add has a relay watched.
func (s *relays) add(r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[*relay]uint32{}
	}
	s.seen[r] = 0
	if !s.ticks {
		s.ticks = true
		time.AfterFunc(stuckFor, s.look)
	}
}

func (s *relays) remove(r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, r)
}

// look begins to read ahead where a relay is in the same write as at the last look.
func (s *relays) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticks = len(s.seen) > 0
	if !s.ticks {
		return
	}
	for r, before := range s.seen {
		n := r.writes.Load()
		if n == before && n > 0 && r.does.CompareAndSwap(relayWrites, relayAhead) {
			r.ahead = &ahead{stream: r.out.Stream, part: s.shared.Part(r.client), done: make(chan struct{})}
			r.ahead.cond.L = &r.ahead.mu
			go r.ahead.run(r)
		}
		s.seen[r] = n
	}
	time.AfterFunc(stuckFor, s.look)
}

// ahead is what was read of an answer ahead of its client. One goroutine reads the stream, and the relay's takes what
// has come.
type ahead struct {
	stream io.Reader
	done   chan struct{} // closed when the stream has no reader

	mu     sync.Mutex // guards all below
	cond   sync.Cond
	pieces [][]byte
	bytes  int64
	taken  int64 // since the reader waits for room
	err    error // what comes after the pieces
	part   account.Part
	held   account.Hold
	closed bool // the relay takes no more
}

// run reads the stream to its end.
func (a *ahead) run(r *relay) {
	defer close(a.done)
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("BUG: a stream made the daemon panic", "panic", p, "stack", string(debug.Stack()))
			a.end(errTooSlow)
		}
	}()
	for a.awaitRoom(r) {
		piece := make([]byte, aheadRoom)
		n, err := a.stream.Read(piece)
		a.mu.Lock()
		if n > 0 {
			a.pieces = append(a.pieces, piece[:n:n])
			a.bytes += int64(n)
			r.q.in.Account.Take(&a.held, account.Ahead, a.bytes)
		}
		a.mu.Unlock()
		if err != nil {
			a.end(err)
			return
		}
		a.cond.Broadcast()
	}
}

// awaitRoom waits until another piece may be read. It returns false if the relay takes no more, or too slowly.
func (a *ahead) awaitRoom(r *relay) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.taken = 0
	for began := time.Now(); !a.closed; {
		more := a.bytes + aheadRoom
		if more <= mostAhead && a.part.Grow(more, allAhead) {
			return true
		}
		waited := time.Since(began)
		if waited >= leastTime && a.taken < int64(waited.Seconds()*leastRate) {
			a.err = errTooSlow
			r.conn.Abort()
			a.cond.Broadcast()
			return false
		}
		timer := time.AfterFunc(time.Second, a.cond.Broadcast)
		a.cond.Wait()
		timer.Stop()
	}
	return false
}

// end sets what comes after the pieces.
func (a *ahead) end(err error) {
	a.mu.Lock()
	a.err = err
	a.mu.Unlock()
	a.cond.Broadcast()
}

// read takes what has come, into the memory of a room.
func (a *ahead) read(room upstream.Room) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.pieces) == 0 && a.err == nil {
		a.cond.Wait()
	}
	if len(a.pieces) == 0 {
		return 0, a.err
	}
	n := copy(room.Take(), a.pieces[0])
	a.pieces[0] = a.pieces[0][n:]
	if len(a.pieces[0]) == 0 {
		a.pieces[0] = nil
		a.pieces = a.pieces[1:]
	}
	a.bytes -= int64(n)
	a.taken += int64(n)
	a.cond.Broadcast()
	return n, nil
}

// close waits until the stream has no reader, and returns the memory. stop ends a read.
func (a *ahead) close(stop func()) {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cond.Broadcast()
	select {
	case <-a.done:
	default:
		stop()
		<-a.done
	}
	a.part.Release()
	a.held.Release()
}

// watched is what a look sees of a relay.
type watched struct {
	client string // the client that shared memory is charged to
	does   atomic.Uint32
	writes atomic.Uint32 // how many have begun
	ahead  *ahead        // nil = the relay reads the stream; guarded by relays.mu
}

// toClient writes to the client. If that takes long, the relay has the stream read ahead from then on.
func (r *relay) toClient(b []byte) error {
	if r.rest != nil {
		_, err := r.conn.Write(b)
		return err
	}
	r.writes.Add(1)
	r.does.Store(relayWrites)
	_, err := r.conn.Write(b)
	if !r.does.CompareAndSwap(relayWrites, relayReads) {
		r.relays.mu.Lock()
		r.rest = r.watched.ahead
		r.relays.mu.Unlock()
	}
	return err
}
