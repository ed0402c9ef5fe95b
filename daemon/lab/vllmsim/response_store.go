package vllmsim

import "sync"

// maxStored bounds the responses that a worker remembers; the oldest goes. vLLM's store, with
// VLLM_ENABLE_RESPONSES_API_STORE=1, has no bound.
const maxStored = 1024

// responseStore holds the answers of /v1/responses that this worker has made, and no other worker knows.
type responseStore struct {
	mu    sync.Mutex // guards all below
	byID  map[string]*responseForm
	order []string // a ring, oldest at next
	next  int
}

func newResponseStore() *responseStore {
	return &responseStore{byID: make(map[string]*responseForm), order: make([]string, maxStored)}
}

func (s *responseStore) get(id string) *responseForm {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

func (s *responseStore) put(f *responseForm) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byID, s.order[s.next])
	s.order[s.next] = f.id
	s.next = (s.next + 1) % maxStored
	s.byID[f.id] = f
}
