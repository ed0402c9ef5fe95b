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
