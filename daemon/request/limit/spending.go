package limit

import "time"

// Spending is what one request takes of its key's limits. Nil takes nothing: of a key without limits, or of a request
// that was not let in. One goroutine at a time uses it.
type Spending struct {
	key      *Key
	at       time.Time // it was let in
	expected Tokens
	used     Tokens
	reserved float64 // tokens
	sent     bool
	room     EndHearer // nil = nobody is told of the end
}

// EndHearer is told that a request in flight has ended, so that another of its key may be let in.
type EndHearer interface{ MayHaveCome() }

// Tells makes the end of the request known to r.
func (s *Spending) Tells(r EndHearer) {
	if s.Limited() {
		s.room = r
	}
}

// Limited reports whether the request takes anything of a limit, and has not ended.
func (s *Spending) Limited() bool { return s != nil && s.key != nil }

// CountsTokens reports whether the tokens of the request count.
func (s *Spending) CountsTokens() bool {
	if !s.Limited() {
		return false
	}
	s.key.mu.Lock()
	defer s.key.mu.Unlock()
	return s.key.limits.Tokens > 0
}

// Reserve takes the tokens that the request is expected to need, or returns why it may not have them; then it has given
// back what Enter took. exact: the prompt's tokens are known, and are no estimate.
func (s *Spending) Reserve(t Tokens, exact bool, at time.Time) *Refusal {
	if !s.Limited() {
		return nil
	}
	k := s.key
	k.mu.Lock()
	defer k.mu.Unlock()
	sure := t
	if !exact {
		sure.Prompt = int(surely * float64(t.Prompt))
	}
	s.expected = t
	if s.reserved > 0 { // for a model that has not served the request
		k.tokens.correct(-s.reserved, s.at, at)
		s.reserved = 0
	}
	if k.limits.Tokens == 0 {
		return nil
	}
	most := float64(k.limits.Tokens)
	refusal := Refusal{By: ByTokens, Limit: k.limits.Tokens, After: k.tokens.wait(at)}
	if n := k.counted(sure); n > most {
		refusal.Asked, refusal.After = int(n), 0
	}
	if refusal.Asked > 0 || refusal.After > 0 {
		s.leave(at)
		return k.refuse(refusal)
	}
	s.reserved, s.at = min(most, k.counted(t)), at
	k.tokens.take(s.reserved, at)
	return nil
}

// surely is the share of a prompt's estimated tokens that it surely has.
const surely = .7

// Grow records that so many tokens of the answer have come. An answer that outgrows what was expected of it is expected
// to be twice as long: most of what is in flight at a time are the long ones.
func (s *Spending) Grow(output int, at time.Time) {
	if !s.Limited() || output <= s.expected.Output {
		return
	}
	s.key.mu.Lock()
	defer s.key.mu.Unlock()
	more := output + s.expected.Output
	s.expected.Output += more
	if s.key.limits.Tokens > 0 {
		s.reserved += float64(more)
		s.key.tokens.correct(float64(more), s.at, at)
	}
}

// Sent records that a worker has the request.
func (s *Spending) Sent() {
	if s != nil {
		s.sent = true
	}
}

// Use records what the request has used so far. The last call counts.
func (s *Spending) Use(t Tokens) {
	if s != nil {
		s.used = t
	}
}

// UsePrompt records that a worker has computed all of the prompt, and that nothing came of the answer.
func (s *Spending) UsePrompt() {
	if s != nil {
		s.UseAll()
		s.used.Output = 0
	}
}

// UseAll records that the request will have used all that it is expected to need, and that nothing of its prompt was
// cached.
func (s *Spending) UseAll() {
	if s != nil {
		s.used = s.expected
		s.used.Cached = 0
	}
}

// Expected returns what the request is expected to need.
func (s *Spending) Expected() Tokens { return s.expected }

// End gives the place back, and corrects the tokens that were reserved to those that were used. A request that no
// worker got has used nothing, and does not count.
func (s *Spending) End(at time.Time) {
	if !s.Limited() {
		return
	}
	k := s.key
	k.mu.Lock()
	s.leave(at)
	k.mu.Unlock()
	if s.room != nil { // without the lock: who waits asks for its own place at once
		s.room.MayHaveCome()
	}
}

// leave is End. The caller holds the key's mu.
func (s *Spending) leave(at time.Time) {
	k := s.key
	s.key = nil
	k.inFlight--
	if !s.sent {
		k.requests.correct(-1, s.at, at)
		k.tokens.correct(-s.reserved, s.at, at)
		return
	}
	n := k.counted(s.used)
	k.tokens.correct(n-s.reserved, s.at, at)
	k.used.Requests++
	k.used.Tokens += n
}
