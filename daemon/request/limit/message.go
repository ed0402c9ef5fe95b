package limit

import "time"

// Amounts are units of each limit.
type Amounts [Count]float64

// Message is what a router tells the others of one key: a sum of what it has taken and no difference, so that a message
// that is lost, or comes twice, changes nothing.
type Message struct {
	Key    string
	Limits Amounts     // 0 = there is no limit
	Taken  Amounts     // here: requests in flight now, requests and tokens in the last 60 s
	Wants  [Count]bool // a request was refused for the limit
	Idle   bool        // nothing is taken, and nobody asked of late: a message now and then is enough
	of     *Key
}

// Lend returns what is lent to a router, in answer to its message. others are what the others hold of each limit, each
// the larger of what it has taken and what is lent to it; theirs is whether one of them wants more. Package ledger has
// Redis do the same. Of what nobody holds each router gets an equal part. If more is held than there is, as requests
// pay afterwards, each waits until its part of that is over. A router that has more than an equal part, while another
// wants some, gets no more until it has no more than that.
func (m *Message) Lend(others Amounts, theirs [Count]bool, routers int) (lent Amounts) {
	n := float64(routers)
	for i, limit := range m.Limits {
		taken := m.Taken[i]
		switch free := limit - taken - others[i]; {
		case free > 0:
			lent[i] = taken + free/n
		case taken > 0:
			lent[i] = taken * limit / (taken + others[i])
		}
		if theirs[i] && taken > limit/n {
			lent[i] = min(lent[i], limit/n)
		}
	}
	return lent
}

// Lent takes the answer to the message.
func (m *Message) Lent(a Amounts, at time.Time) {
	k := m.of
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, s := range k.shares() {
		s.lent, s.heard = max(0, a[i]), at
	}
}

// lively is for how long after its last request a key is not idle.
const lively = 10 * time.Second

// messageOf returns what the others are told of a key.
func messageOf(k *Key, at time.Time) Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.requests.pass(at)
	k.tokens.pass(at)
	m := Message{Key: k.name, of: k,
		Limits: Amounts{float64(k.limits.InFlight), k.requests.limit, full * k.tokens.limit},
		Taken:  Amounts{float64(k.inFlight), max(0, k.requests.minute.sum), max(0, k.tokens.minute.sum)}}
	for i, s := range k.shares() {
		m.Wants[i] = s.wants
		s.wants = false
	}
	m.Idle = m.Taken == Amounts{} && at.Sub(k.asked) >= lively
	return m
}
