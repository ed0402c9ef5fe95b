package events

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Config describes the events of one engine.
type Config struct {
	// Endpoint is where the events go: tcp://host:port with port 0 for any, tcp://*:port, or ipc://path.
	Endpoint string
	// Connect makes the publisher dial Endpoint. Otherwise it listens there.
	Connect bool
	// Replay is where replays are asked for, an address to listen at. Default none.
	Replay string
	// Topic is the first frame of each message. Default empty.
	Topic string
	// Form is the generation of the wire. Default Map.
	Form Form
	// Buffer is how many batches a replay reaches back. Default 10,000, as vLLM's buffer_steps, and never more than 64
	// MiB.
	Buffer int
	// Rank is the data-parallel rank that the batches name.
	Rank int
	// BlockSize is the engine's, in tokens.
	BlockSize int
}

// What a publisher keeps.
const (
	defaultBuffer  = 10_000
	maxBufferBytes = 64 << 20
	queued         = 10_000 // messages for a slow subscriber; more are lost, as at vLLM's hwm
)

// endOfReplay is the sequence number of the message that ends a replay.
const endOfReplay = math.MaxUint64

// message is one published batch.
type message struct {
	seq     uint64
	payload []byte
}

// Publisher publishes the changes of one engine's caches. Safe for concurrent use.
type Publisher struct {
	cfg Config

	mu      sync.Mutex // guards all below
	next    uint64     // sequence number
	buffer  []message  // for replay, oldest first
	bytes   int        // of the buffer's payloads
	fault   Fault
	left    int      // messages that the fault has yet to meet, 0 for all
	held    *message // that the reorder fault sends behind the next one
	sockets *sockets // nil while they are cut, and after Close
	closed  bool
}

// New opens the sockets of a publisher. Addresses with port 0 get one, which Source returns.
func New(cfg Config) (*Publisher, error) {
	if cfg.Form == "" {
		cfg.Form = Map
	}
	if cfg.Buffer == 0 {
		cfg.Buffer = defaultBuffer
	}
	if cfg.Form != Map && cfg.Form != Array || cfg.Buffer < 0 {
		return nil, fmt.Errorf("events: form %q, a buffer of %d batches; want %q or %q and a positive number", cfg.Form,
			cfg.Buffer, Map, Array)
	}
	p := &Publisher{cfg: cfg, fault: NoFault}
	if err := p.open(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close closes the sockets. It is safe to call twice, and for nil.
func (p *Publisher) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.closed = true
	s := p.sockets
	p.sockets = nil
	p.mu.Unlock()
	s.close()
}

// Publish numbers and sends what one step changed. It never waits for a subscriber.
func (p *Publisher) Publish(changes []engine.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ts := float64(time.Now().UnixMicro()) / 1e6
	m := message{seq: p.next, payload: p.cfg.appendBatch(nil, ts, changes)}
	p.next++
	p.buffer = append(p.buffer, m)
	p.bytes += len(m.payload)
	drop := 0
	for len(p.buffer)-drop > p.cfg.Buffer || p.bytes > maxBufferBytes {
		p.bytes -= len(p.buffer[drop].payload)
		p.buffer[drop] = message{}
		drop++
	}
	p.buffer = p.buffer[drop:]
	p.sendFaulty(m)
}

// sendFaulty sends a message in the way of the fault in force. It wants mu.
func (p *Publisher) sendFaulty(m message) {
	if p.held != nil {
		p.send(m)
		p.send(*p.held)
		p.held = nil
		p.meet()
		return
	}
	switch p.fault {
	case Gap, Silence:
	case Duplicate:
		p.send(m)
		p.send(m)
	case Reorder:
		p.held = &m
		return // met when the next one has come
	default:
		p.send(m)
		return
	}
	p.meet()
}

// meet counts a message against the fault, which ends with the last one. It wants mu.
func (p *Publisher) meet() {
	if p.left == 0 {
		return
	}
	p.left--
	if p.left == 0 {
		p.fault = NoFault
	}
}

// send queues a message for every subscriber. It wants mu.
func (p *Publisher) send(m message) {
	if p.sockets != nil {
		p.sockets.pub.Publish([]byte(p.cfg.Topic), sequence(m.seq), m.payload)
	}
}

// since returns the buffered messages from a sequence number on, and false if the publisher is silent now.
func (p *Publisher) since(start uint64) ([]message, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, _ := slices.BinarySearchFunc(p.buffer, start, func(m message, at uint64) int {
		switch {
		case m.seq < at:
			return -1
		case m.seq > at:
			return 1
		}
		return 0
	})
	return slices.Clone(p.buffer[i:]), p.fault != Silence
}

// SetFault begins a fault or ends it: for so many messages, 0 for all until the next call. A message that was held back
// goes out. There is nothing to do for nil.
func (p *Publisher) SetFault(f Fault, messages int) error {
	if !slices.Contains(Faults, f) || messages < 0 {
		return fmt.Errorf("events: fault %q of %d messages; want one of %s", f, messages, strings.Join(names(), ", "))
	}
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if p.held != nil {
		p.send(*p.held)
		p.held = nil
	}
	p.fault = f
	p.left = messages
	closed := p.closed
	var cut *sockets
	if f == Cut {
		cut = p.sockets
		p.sockets = nil
	}
	missing := p.sockets == nil && f != Cut
	p.mu.Unlock()
	cut.close()
	if missing && !closed {
		return p.open()
	}
	return nil
}

// Next returns the sequence number of the next message.
func (p *Publisher) Next() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// sequence returns the frame of a sequence number.
func sequence(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// Subscribers returns how many connected readers want the events.
func (p *Publisher) Subscribers() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sockets == nil {
		return 0
	}
	return p.sockets.pub.Subscribers(p.cfg.Topic)
}
