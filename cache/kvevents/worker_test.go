package kvevents

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/parts/blocks"
	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/zmqpub"
)

// fakeWorker publishes events as vLLM does, and keeps what its sink should hold.
type fakeWorker struct {
	t      testing.TB
	topic  []byte
	shape  int // frames of a replay's answer
	queue  int // messages for a slow subscriber
	buffer int // batches that can be replayed; 0 = all

	mu     sync.Mutex
	seq    uint64
	kept   []recorded
	cache  map[uint64]int // physical blocks by hash
	next   uint64         // hash
	unsent [][]byte       // see hold

	pub           *zmqpub.Publisher
	endpoint      string
	replay        string
	events, asked *zmtp.Listener
}

func startWorker(t testing.TB) *fakeWorker { return startWorkerOf(t, 100_000) }

func startWorkerOf(t testing.TB, queue int) *fakeWorker {
	w := &fakeWorker{t: t, topic: []byte("kv@w@m"), shape: 4, queue: queue, cache: map[uint64]int{}, next: 1}
	w.start("tcp://"+porttest.Address(t), "tcp://"+porttest.Address(t)) // it may come back there
	t.Cleanup(w.stop)
	return w
}

func (w *fakeWorker) start(endpoint, replay string) {
	w.pub = zmqpub.New(zmtp.Config{}, w.queue)
	var err error
	if w.events, err = w.pub.Listen(context.Background(), endpoint); err != nil {
		w.t.Fatal(err)
	}
	if w.asked, err = zmtp.Listen(context.Background(), replay, zmtp.Config{Kind: zmtp.ROUTER}, w.answer); err != nil {
		w.t.Fatal(err)
	}
	w.endpoint = w.events.Addr().String()
	w.replay = w.asked.Addr().String()
}

func (w *fakeWorker) stop() {
	w.events.Close()
	w.asked.Close()
}

// restart is another process at the same addresses.
func (w *fakeWorker) restart() {
	w.stop()
	w.mu.Lock()
	w.seq = 0
	w.kept = nil
	w.cache = map[uint64]int{}
	w.mu.Unlock()
	w.start(w.endpoint, w.replay)
}

// answer answers replays.
func (w *fakeWorker) answer(c *zmtp.Conn) {
	for {
		m, err := c.Recv()
		if err != nil || len(m) != 2 || len(m[1]) != 8 {
			return
		}
		from := binary.BigEndian.Uint64(m[1])
		w.mu.Lock()
		kept := slices.Clone(w.kept)
		w.mu.Unlock()
		for _, b := range kept {
			if b.seq >= from && w.send(c, w.topic, b.seq, b.payload) != nil {
				return
			}
		}
		if w.send(c, nil, endOfReplay, nil) != nil {
			return
		}
	}
}

func (w *fakeWorker) send(c *zmtp.Conn, topic []byte, seq uint64, payload []byte) error {
	frames := [][]byte{nil, topic, binary.BigEndian.AppendUint64(nil, seq), payload}
	if w.shape == 3 {
		frames = slices.Delete(frames, 1, 2)
	}
	return c.Send(frames...)
}

// What may go wrong with a batch on its way.
const (
	sent = iota
	lost
	twice
	held // until the next one has gone
)

// publish numbers a batch of the events, keeps it for replays, and sends it or not.
func (w *fakeWorker) publish(how int, events ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ts := float64(time.Now().UnixNano()) / 1e9
	payload := append([]byte{0x93}, packReal(ts)...)
	payload = append(payload, pack(list(events))...)
	payload = append(payload, 0)
	w.kept = append(w.kept, recorded{seq: w.seq, payload: payload})
	if w.buffer > 0 && len(w.kept) > w.buffer {
		w.kept = w.kept[1:]
	}
	frames := [][]byte{w.topic, binary.BigEndian.AppendUint64(nil, w.seq), payload}
	w.seq++
	switch how {
	case lost:
		return
	case held:
		w.unsent = frames
		return
	case twice:
		w.pub.Publish(frames...)
	}
	w.pub.Publish(frames...)
	if w.unsent != nil {
		w.pub.Publish(w.unsent...)
		w.unsent = nil
	}
}

// store fills a block, and remove evicts some; each is published.
func (w *fakeWorker) store(how int) {
	w.mu.Lock()
	h := w.next
	w.next++
	if rand.IntN(8) == 0 && len(w.cache) > 0 { // a second copy
		for h = range w.cache {
			break
		}
	}
	w.cache[h]++
	w.mu.Unlock()
	w.publish(how, list{"BlockStored", list{h}, nil, list{1, 2}, 2, nil, "GPU"})
}

func (w *fakeWorker) remove(how int) {
	w.mu.Lock()
	var events list
	for h := range w.cache {
		if w.cache[h]--; w.cache[h] == 0 {
			delete(w.cache, h)
		}
		events = append(events, list{"BlockRemoved", list{h}, "GPU"})
		if len(events) == 3 {
			break
		}
	}
	w.mu.Unlock()
	w.publish(how, events...)
}

func (w *fakeWorker) clear(how int) {
	w.mu.Lock()
	clear(w.cache)
	w.mu.Unlock()
	w.publish(how, list{"AllBlocksCleared"})
}

func (w *fakeWorker) held() map[uint64]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.cache)
}

// view is a Sink that counts blocks, and fails on a removal of what is not there while its source is live.
type view struct {
	mu    sync.Mutex
	state State
	count map[uint64]int
	tiers map[blocks.Medium]int
	wrong []string
	pause chan struct{} // if set, Store waits until it is closed
}

func newView() *view { return &view{count: map[uint64]int{}, tiers: map[blocks.Medium]int{}} }

func (v *view) Store(s *blocks.Stored) {
	v.mu.Lock()
	pause := v.pause
	v.mu.Unlock()
	if pause != nil {
		<-pause
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, h := range s.Hashes {
		v.count[h]++
	}
	v.tiers[s.Medium] += len(s.Hashes)
}

func (v *view) Remove(_ blocks.Medium, hashes []uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, h := range hashes {
		if v.count[h]--; v.count[h] <= 0 {
			if v.count[h] < 0 && v.state == Live {
				v.wrong = append(v.wrong, fmt.Sprintf("hash %d is removed and not there", h))
			}
			delete(v.count, h)
		}
	}
}

func (v *view) Clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.count)
}

func (v *view) enter(s State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state = s
}

func (v *view) held() map[uint64]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.count)
}

func packReal(f float64) []byte {
	return binary.BigEndian.AppendUint64([]byte{mpFloat64}, math.Float64bits(f))
}
