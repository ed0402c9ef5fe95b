package vllmsim

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// sessionLife is vLLM's SAGEMAKER_SESSIONS_EXPIRATION.
	sessionLife = 20 * time.Minute
	// maxSessions bounds the sessions of a worker; vLLM's bound is its disk.
	maxSessions = 1 << 17
	// payloadTokenBytes of a payload make one token of the prompts that see it: 100 MB are maxPayloadTokens of them.
	payloadTokenBytes = 24 << 10
	// maxPayloadTokens is what several pictures cost in a real model.
	maxPayloadTokens = 4096
)

// held is a session that the worker holds.
type held struct {
	id      string
	expires time.Time
	bytes   int64    // of its payload
	tokens  []uint32 // which stand for the payload at the head of every prompt; nil for a session without one
	sum     string   // the payload's SHA-256
}

// sessions are those of one worker. As vLLM's they live until they are closed, or until somebody looks after their end.
type sessions struct {
	mu    sync.Mutex // guards live, uses
	live  map[string]*held
	uses  int64 // requests that named a session, and were let in
	limit time.Duration
}

func newSessions(limit time.Duration) *sessions {
	return &sessions{live: make(map[string]*held), limit: limit}
}

// open keeps a session under a new id, a UUID. It sweeps the expired first, as vLLM does.
func (t *sessions) open(h *held) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	if len(t.live) >= maxSessions {
		return fmt.Errorf("%d sessions are open", maxSessions)
	}
	h.id, h.expires = newUUID(), time.Now().Add(t.limit)
	t.live[h.id] = h
	return nil
}

var errNoSession = errors.New("session not found")

// find looks a session up. vLLM removes an expired one when it is named, and lets that one request in as if it named none;
// what has a payload cannot be answered without it.
func (t *sessions) find(id string) (*held, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.live[id]
	if h == nil {
		return nil, fmt.Errorf("%w: %s", errNoSession, id)
	}
	if time.Now().After(h.expires) {
		delete(t.live, id)
		if h.tokens != nil {
			return nil, fmt.Errorf("%w: %s", errNoSession, id)
		}
		h = nil
	}
	return h, nil
}

// used counts a request that was let in.
func (t *sessions) used() {
	t.mu.Lock()
	t.uses++
	t.mu.Unlock()
}

func (t *sessions) close(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live[id] == nil {
		return fmt.Errorf("%w: %s", errNoSession, id)
	}
	delete(t.live, id)
	return nil
}

// sweep wants mu.
func (t *sessions) sweep() {
	now := time.Now()
	for id, h := range t.live {
		if now.After(h.expires) {
			delete(t.live, id)
		}
	}
}

// count is how many sessions are live, how many bytes of payload they hold, and how often sessions were used.
func (t *sessions) count() (live int, bytes, uses int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep()
	for _, h := range t.live {
		bytes += h.bytes
	}
	return len(t.live), bytes, t.uses
}

// newUUID is a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
