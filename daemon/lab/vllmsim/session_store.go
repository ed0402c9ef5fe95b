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
)

// session is one that the worker holds.
type session struct {
	id      string
	expires time.Time
	bytes   int64    // of its payload
	tokens  []uint32 // stand for the payload at the head of every prompt; nil for a session without one
	sum     string   // the payload's SHA-256
}

// sessionStore holds the sessions of one worker. As vLLM's they live until they are closed, or until, after their end,
// they are named or another one is opened.
type sessionStore struct {
	mu    sync.Mutex // guards live, uses
	live  map[string]*session
	uses  int64 // requests that named a session, and were let in
	limit time.Duration
}

func newSessionStore(limit time.Duration) *sessionStore {
	return &sessionStore{live: make(map[string]*session), limit: limit}
}

// open stores a session under a new id, a UUID. It sweeps the expired first, as vLLM does.
func (s *sessionStore) open(v *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	if len(s.live) >= maxSessions {
		return fmt.Errorf("%d sessions are open", maxSessions)
	}
	v.id = newUUID()
	v.expires = time.Now().Add(s.limit)
	s.live[v.id] = v
	return nil
}

var errNoSession = errors.New("session not found")

// find returns a session. vLLM removes an expired one when it is named, and lets that one request in as if it named
// none; find returns nil then. What has a payload cannot be answered without it.
func (s *sessionStore) find(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.live[id]
	if v == nil {
		return nil, fmt.Errorf("%w: %s", errNoSession, id)
	}
	if time.Now().After(v.expires) {
		delete(s.live, id)
		if v.tokens != nil {
			return nil, fmt.Errorf("%w: %s", errNoSession, id)
		}
		return nil, nil
	}
	return v, nil
}

// countUse counts a request that named a session, and was let in.
func (s *sessionStore) countUse() {
	s.mu.Lock()
	s.uses++
	s.mu.Unlock()
}

// remove forgets a session.
func (s *sessionStore) remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[id] == nil {
		return fmt.Errorf("%w: %s", errNoSession, id)
	}
	delete(s.live, id)
	return nil
}

// sweep removes the expired. It wants mu.
func (s *sessionStore) sweep() {
	now := time.Now()
	for id, v := range s.live {
		if now.After(v.expires) {
			delete(s.live, id)
		}
	}
}

// count returns how many sessions are live, how many bytes of payload they hold, and how often sessions were used.
func (s *sessionStore) count() (live int, bytes, uses int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	for _, v := range s.live {
		bytes += v.bytes
	}
	return len(s.live), bytes, s.uses
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}
