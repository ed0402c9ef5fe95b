package events

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/cache/zmtp"
	"github.com/warmpath/warmpath/daemon/lab/zmqpub"
)

// sockets are what a publisher has open.
type sockets struct {
	pub     *zmqpub.Publisher
	end     context.CancelFunc
	running sync.WaitGroup // dialling
	ears    []*zmtp.Listener
}

// close closes all and waits for it. A nil one is closed.
func (s *sockets) close() {
	if s == nil {
		return
	}
	s.end()
	for _, l := range s.ears {
		l.Close()
	}
	s.running.Wait()
}

// open opens the sockets, and keeps the ports that they got.
func (p *Publisher) open() error {
	ctx, end := context.WithCancel(context.Background())
	s := &sockets{pub: zmqpub.New(zmtp.Config{}, queued), end: end}
	at, replay := p.cfg.Endpoint, p.cfg.Replay
	if p.cfg.Connect {
		if _, err := zmtp.ParseAddress(at); err != nil {
			end()
			return fmt.Errorf("events: %w", err)
		}
		s.running.Go(func() { s.pub.Connect(ctx, at) })
	} else {
		l, err := s.pub.Listen(ctx, at)
		if err != nil {
			end()
			return fmt.Errorf("events: endpoint: %w; choose a free address", err)
		}
		s.ears = append(s.ears, l)
		at = bound(at, l)
	}
	if replay != "" {
		l, err := zmtp.Listen(ctx, replay, zmtp.Config{Kind: zmtp.ROUTER}, p.answerReplays)
		if err != nil {
			s.close()
			return fmt.Errorf("events: replay endpoint: %w; choose a free address", err)
		}
		s.ears = append(s.ears, l)
		replay = bound(replay, l)
	}
	p.mu.Lock()
	stale := p.closed || p.sockets != nil
	if !stale {
		p.sockets = s
		p.cfg.Endpoint = at
		p.cfg.Replay = replay
	}
	p.mu.Unlock()
	if stale { // closed, or opened by another call meanwhile
		s.close()
	}
	return nil
}

// bound returns the address of a listener, with the star of the address that was asked for.
func bound(asked string, l *zmtp.Listener) string {
	got := l.Addr().String()
	if strings.HasPrefix(asked, "tcp://*:") {
		return "tcp://*" + got[strings.LastIndexByte(got, ':'):]
	}
	return got
}

// answerReplays answers one peer that asks for replays until it goes.
func (p *Publisher) answerReplays(c *zmtp.Conn) {
	for {
		ask, err := c.Recv()
		if err != nil {
			return
		}
		if len(ask) != 2 || len(ask[0]) > 0 || len(ask[1]) != 8 {
			continue // vLLM logs that and does not answer
		}
		found, talks := p.since(binary.BigEndian.Uint64(ask[1]))
		if !talks {
			continue
		}
		for _, m := range found {
			if c.Send(p.replayFrames(p.cfg.Topic, m)...) != nil {
				return
			}
		}
		if c.Send(p.replayFrames("", message{seq: endOfReplay})...) != nil {
			return
		}
	}
}

// replayFrames returns one message of a replay.
func (p *Publisher) replayFrames(topic string, m message) [][]byte {
	if p.cfg.Form == Array {
		return [][]byte{{}, sequence(m.seq), m.payload}
	}
	return [][]byte{{}, []byte(topic), sequence(m.seq), m.payload}
}

// Source is what GET /kv_event_sources answers for one data-parallel rank.
type Source struct {
	Enabled   bool    `json:"enable_kv_cache_events"`
	Publisher string  `json:"publisher"`
	Endpoint  string  `json:"endpoint"`
	Replay    *string `json:"replay_endpoint"`
	Buffer    int     `json:"buffer_steps"`
	HWM       int     `json:"hwm"`
	Queue     int     `json:"max_queue_size"`
	Topic     string  `json:"topic"`
}

// Source returns where the events are, ports that were given for 0 included.
func (p *Publisher) Source() Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Source{
		Enabled:   true,
		Publisher: "zmq",
		Endpoint:  p.cfg.Endpoint,
		Buffer:    p.cfg.Buffer,
		HWM:       queued,
		Queue:     queued,
		Topic:     p.cfg.Topic,
	}
	if replay := p.cfg.Replay; replay != "" {
		s.Replay = &replay
	}
	return s
}
