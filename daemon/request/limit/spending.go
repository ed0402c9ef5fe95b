package limit

import "time"

// Spending is what one request takes of its key's limits. Nil takes nothing: of a key without limits, or of a request
// that was not let in. One goroutine at a time uses it.
type Spending struct {
	key      *Key
	at       time.Time // it was let in
	ask      Ask
	expected Tokens
	used     Tokens
	reserved float64 // tokens
	risk     float64 // tokens by which the answer may outgrow what is reserved
	sent     bool
	room     EndHearer // nil = the end is not announced
}

// EndHearer is called when a request in flight has ended, so that another one of its key may be let in.
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
// back what Enter took.
func (s *Spending) Reserve(a Ask, at time.Time) *Refusal {
	if !s.Limited() {
		return nil
	}
	k := s.key
	k.mu.Lock()
	defer k.mu.Unlock()
	s.release(0, at) // of a model that has not served the request
	s.ask = a
	var risk float64
	s.expected, risk = k.habits.expect(&a, k.limits.Tokens)
	if k.limits.Tokens == 0 {
		return nil
	}
	refusal := Refusal{By: ByTokens, Limit: k.limits.Tokens, After: k.tokens.wait(at)}
	if n := k.counted(Tokens{Prompt: k.habits.least(&a), Cached: a.Cached}); n > float64(k.limits.Tokens) {
		refusal.Asked, refusal.After = int(n), 0
	}
	if refusal.Asked > 0 || refusal.After > 0 {
		s.leave(at)
		return k.refuse(refusal)
	}
	s.reserved, s.risk, s.at = min(float64(k.limits.Tokens), k.counted(s.expected)), risk, at
	k.tokens.take(s.reserved, at)
	k.tokens.risk += risk
	if a.Whole && a.Answers > 0 {
		k.whole[s] = struct{}{}
	}
	return nil
}

// release gives back what is reserved, and takes what was used. The caller holds the key's mu.
func (s *Spending) release(used float64, at time.Time) {
	t := &s.key.tokens
	t.correct(min(used, mostDebt*t.limit)-s.reserved, s.at, at)
	s.reserved = 0
	delete(s.key.whole, s)
	s.unrisk(s.risk, at)
}

// unrisk lowers the answer's risk by the given number of tokens. The caller holds the key's mu.
func (s *Spending) unrisk(tokens float64, at time.Time) {
	t, less := &s.key.tokens, min(s.risk, tokens)
	t.risk = max(0, t.risk-faded(less, at.Sub(s.at)))
	s.risk -= less
}

// Grow records how many tokens of a streamed answer have arrived.
func (s *Spending) Grow(output int, at time.Time) {
	if !s.Limited() || s.ask.Whole || output <= s.expected.Output {
		return
	}
	s.key.mu.Lock()
	defer s.key.mu.Unlock()
	s.outgrow(output, at)
}

// outgrow reserves more for an answer if more tokens have arrived than were expected. It is then expected to be twice
// as long, or as long as its client allows if that is less: most of what is in flight at a time are the long ones.
// The caller holds the key's mu.
func (s *Spending) outgrow(output int, at time.Time) {
	if output <= s.expected.Output {
		return
	}
	more := max(output, s.ask.bounded(2*float64(output))) - s.expected.Output
	s.expected.Output += more
	if s.key.limits.Tokens > 0 {
		s.reserved += float64(more)
		s.key.tokens.correct(float64(more), s.at, at)
		s.unrisk(float64(more), at)
	}
}

// unseen returns the tokens that the engine should have generated of an answer in one piece. The caller holds the key's
// mu.
func (s *Spending) unseen(at time.Time) float64 {
	return at.Sub(s.at).Seconds() * s.key.habits.pace() * float64(s.ask.Answers)
}

// Sent records that a worker has the request.
func (s *Spending) Sent() {
	if s != nil {
		s.sent = true
	}
}

// Use records what the request has used so far. The last call counts.
func (s *Spending) Use(t Tokens) {
	if s == nil {
		return
	}
	if t.Prompt > plausible {
		t.Prompt = s.Expected().Prompt
	}
	if t.Output > plausible {
		t.Output = s.Expected().Output
	}
	s.used = t
}

// Learn records the engine's count of a request whose answer came to its end. The key's next requests are expected to
// be like it. Of an engine that reports no usage, t has only the tokens of the answer, by the bytes of its text.
func (s *Spending) Learn(t Tokens, at time.Time) {
	if s.Limited() && max(t.Prompt, t.Output) <= plausible {
		s.key.mu.Lock()
		defer s.key.mu.Unlock()
		s.key.habits.learn(&s.ask, &t, at.Sub(s.at))
	}
}

// UseAll records that the request will have used all that it is expected to need, and that nothing of its prompt was
// cached.
func (s *Spending) UseAll() {
	if s != nil {
		s.used = s.Expected()
		s.used.Cached = 0
	}
}

// Left records that the client has left before it saw anything of the answer. A worker has computed the prompt. It
// generates an answer in one piece unseen, and nothing shows that it stops: as much counts as it may get, or what it
// can have generated until now if that is more.
func (s *Spending) Left(at time.Time) {
	if !s.Limited() {
		return
	}
	s.UseAll()
	switch {
	case !s.sent:
	case s.ask.Whole:
		s.key.mu.Lock()
		defer s.key.mu.Unlock()
		s.used.Output = s.ask.bounded(max(float64(s.used.Output)+s.risk, s.unseen(at)))
	default:
		s.used.Output = 0
	}
}

// Expected returns what the request is expected to need.
func (s *Spending) Expected() Tokens {
	if k := s.key; k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
	}
	return s.expected
}

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
	if s.room != nil { // without the lock: a waiting request asks for a place of its own at once
		s.room.MayHaveCome()
	}
}

// leave is End. The caller holds the key's mu.
func (s *Spending) leave(at time.Time) {
	k, used := s.key, 0.
	k.inFlight--
	if s.sent {
		used = k.counted(s.used)
		k.used.Requests++
		k.used.Tokens += used
	} else {
		k.requests.correct(-1, s.at, at)
	}
	s.release(used, at)
	s.key = nil
}
