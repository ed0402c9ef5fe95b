package limit

import "time"

// Amounts are units of each limit.
type Amounts [Count]float64

// Message has the use of one key at one router. It has sums and no differences, so that a message that is lost, or
// arrives twice, changes nothing.
type Message struct {
	Key    string
	Limits Amounts     // 0 = there is no limit
	Gone   Amounts     // what routers had taken in the last 60 s that are gone
	Taken  Amounts     // here: requests in flight now, requests and tokens in the last 60 s
	Debts  Amounts     // here, of these
	Past   [Count]Past // here: Taken by its age
	Wants  [Count]bool // a request was refused for the limit
	Idle   bool        // nothing is used, and no request came recently: an occasional message is enough
	of     *Key
}

// Lent takes the answer to the message: what is lent to this router, and the debts of the others.
func (m *Message) Lent(lent, debts Amounts, at time.Time) {
	k := m.of
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, s := range k.shares() {
		s.lent, s.heard = max(0, lent[i]), at
	}
	k.requests.pass(at)
	k.tokens.pass(at)
	k.requests.theirs, k.tokens.theirs = debts[ByRequests], debts[ByTokens]
}

// Gone is the use of routers that have left, by their last message.
type Gone struct {
	Past [Count]Past
	Age  time.Duration // since then
}

// part is what routers that are gone took of one limit at about the same time.
type part struct {
	by    By
	units float64
	until time.Time // it counts
}

// Left takes what the routers had taken that have gone. It stays taken until it leaves the minute.
func (m *Message) Left(all []Gone, at time.Time) {
	k := m.of
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone = k.gone[:0]
	for i := range all {
		for by := range all[i].Past {
			for n, units := range all[i].Past[by] {
				if left := time.Minute - all[i].Age - time.Duration(n)*Shown; units > 0 && left > 0 {
					k.gone = append(k.gone, part{by: By(by), units: units, until: at.Add(left)})
				}
			}
		}
	}
}

// lively is for how long after its last request a key is not idle.
const lively = 10 * time.Second

// messageOf returns the message to the other routers about a key.
func messageOf(k *Key, at time.Time) Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := Message{Key: k.name, of: k, Limits: Amounts{float64(k.limits.InFlight)}, Taken: Amounts{float64(k.inFlight)}}
	for by, of := range [...]*meter{ByRequests: &k.requests, ByTokens: &k.tokens} {
		if of == nil {
			continue
		}
		of.pass(at)
		m.Limits[by], m.Taken[by] = of.limit, max(0, of.minute.sum)
		m.Debts[by], m.Past[by] = min(mostDebt*of.limit, of.minute.debt()), of.minute.past()
	}
	m.Limits[ByTokens] *= full
	for _, p := range k.gone {
		if p.until.After(at) {
			m.Gone[p.by] += p.units
		}
	}
	for i, s := range k.shares() {
		m.Wants[i] = s.wants
		s.wants = false
	}
	m.Idle = m.Taken == Amounts{} && m.Debts == Amounts{} && at.Sub(k.asked) >= lively
	return m
}
