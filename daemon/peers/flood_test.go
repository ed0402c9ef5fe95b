package peers

import (
	"errors"
	"testing"
	"time"
)

// backlog makes a router queue 4,000 records a second while the router or Redis is away. It returns the frames with the
// times at which they were sent: one after the other, or all at the end.
func backlog(t *Sender, c *clock, away time.Duration, atOnce bool) (all []letter) {
	send := func() {
		frames := t.Take(64<<20, c.now)
		t.Confirm(frames)
		for _, f := range frames {
			all = append(all, letter{frame: f, sent: c.now})
		}
	}
	for end := c.now.Add(away); c.now.Before(end); c.pass(25 * time.Millisecond) {
		for range 100 {
			t.FirstByte(1, c.now)
		}
		if !atOnce {
			send()
		}
	}
	send()
	return all
}

// TestBacklogIsNoFlood: a router that was cut off for long sends all its records at once, and receivers accept them.
// The records of a router that sends more than that are refused, and a beat requests its list of requests in flight.
func TestBacklogIsNoFlood(t *testing.T) {
	t.Parallel()
	const away = 30 * time.Second
	hear := func(h *Receiver, all []letter, now time.Time) (err error) {
		for _, l := range all {
			err = errors.Join(err, h.Apply(l.frame, l.sent, now))
		}
		return err
	}
	f := func(name string, known, atOnce bool) {
		c := &clock{began.Add(time.Second)}
		_, h := NewPair(newPool(t, c, 3, 1<<20), 1)
		sender, _ := NewPair(newPool(t, c, 3, 1<<20), 7)
		if known {
			if err := hear(h, backlog(sender, c, time.Second, false), c.now); err != nil {
				t.Fatal(err)
			}
		}
		all := backlog(sender, c, away, atOnce)
		if err := hear(h, all, c.now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s := h.Stats()
		if told := sender.Stats().Records; s.Records != told || told < 2*maxRecords || s.Flooded+s.Gaps != 0 {
			t.Errorf("%s: %+v of %d records sent", name, s, told)
		}
		if err := hear(h, backlog(sender, c, 2*away, false), c.now); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
		_, _, _ = h.TakeRequests()
		for range 2 * maxRecords {
			sender.FirstByte(1, c.now)
		}
		err := hear(h, backlog(sender, c, 25*time.Millisecond, true), c.now)
		if _, _, flags := h.TakeRequests(); !errors.Is(err, errFlood) || flags&beatAsk == 0 {
			t.Errorf("%s: then a flood: %v, wants %b; want %v, and to know what is in flight", name, err, flags, errFlood)
		}
	}
	f("Redis was away", true, true)
	f("Redis was away from the start", false, true)
	f("the receiver was away", true, false)
}
