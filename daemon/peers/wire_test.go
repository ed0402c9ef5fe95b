package peers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// toldFrames returns the frames of a router that has sent two requests, of which one has ended.
func toldFrames(t testing.TB, self uint64) [][]byte {
	c := &clock{began.Add(time.Second)}
	p := newPool(t, c, 3, 1<<20)
	sender, _ := NewPair(p, self)
	p.Tell(sender)
	a := send(t, p, words("once upon a time", 40), c.now)
	send(t, p, words("once upon a time", 60), c.now)
	a.trip.FirstByte(c.now)
	a.answer(words("and so on", 9), c.now)
	sender.QueueBeat(&Beat{Name: "one", Workers: []Named{{ID: "w0", Key: 1, Address: 2}}, digest: 3}, c.now)
	sender.QueueOpen(c.now)
	sender.Forgotten(worker.KeyOf("w2"))
	sender.QueueSession(Session{Kind: 1, Key: "key", Value: []byte("value"), Life: time.Minute}, c.now)
	return sender.Take(1<<20, c.now)
}

// resum gives a changed frame a checksum that fits.
func resum(frame []byte) []byte {
	body := slices.Clone(frame[:len(frame)-sumBytes])
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))
}

// FuzzHear: no content of a stream breaks the receiver, and no router gets more memory than its share.
func FuzzHear(f *testing.F) {
	for _, frame := range toldFrames(f, 7) {
		f.Add(frame)
		f.Add(frame[:len(frame)-9])
	}
	f.Add([]byte("WH"))
	c := &clock{began.Add(time.Second)}
	p := newPool(f, c, 3, 1<<20)
	f.Fuzz(func(t *testing.T, frame []byte) {
		_, h := NewPair(p, 1)
		if len(frame) > headBytes+sumBytes { // get past the sum and the secret
			binary.LittleEndian.PutUint64(frame[4:], h.owner.fingerprint())
			frame = resum(frame)
		}
		_ = h.Apply(frame, c.now, c.now)
		for _, s := range h.peers {
			if len(s.open) > maxOpen {
				t.Errorf("%d requests in flight", len(s.open))
			}
			h.endInFlight(s)
		}
		for _, s := range p.Workers.Stats(c.now) {
			if s.Theirs != 0 || s.Pending != 0 {
				t.Errorf("%s: %d requests and %d tokens are left", s.ID, s.Theirs, s.Pending)
			}
		}
	})
}

// Refused messages are counted, and leave the books as they are.
func TestWhatIsNotBelieved(t *testing.T) {
	good := toldFrames(t, 7)[0]
	f := func(name string, change func([]byte) []byte, want error, count func(ReceiverStats) uint64) {
		t.Helper()
		c := &clock{began.Add(time.Second)}
		p := newPool(t, c, 3, 1<<20)
		_, h := NewPair(p, 1)
		err := h.Apply(change(slices.Clone(good)), c.now, c.now)
		if !errors.Is(err, want) || count(h.Stats()) != 1 {
			t.Errorf("%s: %v, counted %+v; want %v", name, err, h.Stats(), want)
		}
		if n := p.Index.Stats().Blocks; n != 0 {
			t.Errorf("%s: %d blocks are accepted", name, n)
		}
	}
	foreign := func(s ReceiverStats) uint64 { return s.Foreign }
	f("nothing", func([]byte) []byte { return nil }, errForeign, foreign)
	f("another's", func([]byte) []byte { return []byte(strings.Repeat("x", 100)) }, errForeign, foreign)
	f("cut", func(b []byte) []byte { return b[:len(b)/2] }, errCut, foreign)
	f("changed", func(b []byte) []byte { b[40] ^= 1; return b }, errCut, foreign)
	f("another version", func(b []byte) []byte { b[2]++; return resum(b) }, errVersion,
		func(s ReceiverStats) uint64 { return s.Versions })
	f("another text", func(b []byte) []byte { b[3]++; return resum(b) }, errVersion,
		func(s ReceiverStats) uint64 { return s.Versions })
	f("another secret", func(b []byte) []byte { b[4]++; return resum(b) }, errSecret,
		func(s ReceiverStats) uint64 { return s.Secrets })
}

func TestRepeatsGapsAndFloods(t *testing.T) {
	c := &clock{began.Add(time.Second)}
	from, to := newPool(t, c, 3, 1<<20), newPool(t, c, 3, 1<<20)
	sender, _ := NewPair(from, 7)
	from.Tell(sender)
	_, h := NewPair(to, 1)
	frame := func() []byte {
		all := sender.Take(1<<20, c.now)
		sender.Confirm(all)
		return slices.Clone(all[0])
	}
	theirs := func() (n int) {
		for _, s := range to.Workers.Stats(c.now) {
			n += s.Theirs
		}
		return n
	}
	a := send(t, from, words("a", 9), c.now)
	one := frame()
	for range 3 {
		if err := h.Apply(one, c.now, c.now); err != nil {
			t.Fatal(err)
		}
	}
	if s := h.Stats(); s.Repeated != 2 || theirs() != 1 {
		t.Errorf("after repeats: %+v, %d in flight; want 2 repeated, 1 in flight", s, theirs())
	}
	a.answer("x", c.now)
	_ = frame() // is lost
	send(t, from, words("b", 9), c.now)
	if err := h.Apply(frame(), c.now, c.now); err != nil {
		t.Fatal(err)
	}
	if s := h.Stats(); s.Gaps != 1 || theirs() != 1 {
		t.Errorf("after a gap: %+v, %d in flight; want 1 gap, 1 in flight", s, theirs())
	}
	if _, _, flags := h.TakeRequests(); flags&beatAsk == 0 {
		t.Error("nobody is asked for what is in flight")
	}
	if lost, _ := h.Expire(c.now, c.now, true); len(lost) != 0 {
		t.Errorf("gone at once: %v", lost)
	}
	c.pass(Lease + time.Second)
	if lost, _ := h.Expire(c.now, c.now, true); len(lost) != 1 || theirs() != 0 {
		t.Errorf("after the lease: %v gone, %d in flight; want one, 0", lost, theirs())
	}
	var flood error
	for range 5 * maxRecords / 1000 { // a second and the four of the silence
		for range 1000 {
			sender.FirstByte(1, c.now)
		}
		flood = h.Apply(frame(), c.now, c.now)
	}
	if !errors.Is(flood, errFlood) {
		t.Errorf("a flood: %v; want %v", flood, errFlood)
	}
}

// Frames that Redis has lost are sent again: a router that missed them then agrees with the others, and one that had
// applied them counts nothing twice.
func TestWhatWasLostIsToldAgain(t *testing.T) {
	f := newFleet(t, 11, 3, 5, 1<<20)
	from, deaf := f.routers[0], f.routers[1]
	for i := range 20 {
		n := send(t, from.pool, f.text(), f.now)
		f.pass(20 * time.Millisecond)
		n.answer(words("and so on", 3), f.now)
		send(t, from.pool, f.text(), f.now) // and stays in flight
		f.post(from, 0, false)
		if i > 10 && i < 15 {
			deaf.mail = nil // only the third reads it
		}
		f.deliver(deaf)
	}
	heard := func() (n int) { return int(f.routers[2].receiver.Stats().Records) }
	for _, n := range f.routers {
		f.deliver(n)
	}
	before := heard()
	if slices.Equal(deaf.view(f), from.view(f)) || deaf.receiver.Stats().Gaps == 0 {
		t.Fatal("nothing was lost: the test shows nothing")
	}
	from.sender.requeue()
	from.sender.requeue()
	f.settle()
	f.agree("after it was sent again")
	s := deaf.receiver.Stats()
	if s.Late == 0 || s.Open != 20 || heard() != before+2 { // the requests in flight of two
		t.Errorf("%+v; want some late, 20 in flight; the third received %d records, then %d; want two more", s, before, heard())
	}
}

// Requests in flight that were sent just now take few bytes each, and are accepted all the same.
func TestOpenSoonAfterSent(t *testing.T) {
	c := &clock{began.Add(time.Second)}
	p := newPool(t, c, 3, 1<<20)
	_, h := NewPair(p, 1)
	sender, _ := NewPair(p, 7)
	const requests = 20
	for range requests {
		sender.Sent(&route.Sent{Worker: worker.KeyOf("w1"), Tokens: 1}, nil, c.now)
	}
	sender.QueueOpen(c.now)
	for _, frame := range sender.Take(1<<20, c.now) {
		if err := h.Apply(frame, c.now, c.now); err != nil {
			t.Error(err)
		}
	}
	if s := h.Stats(); s.Foreign != 0 || s.Open != requests {
		t.Errorf("%+v; want %d in flight", s, requests)
	}
}

// The events of requests are written while nobody sends, before they become too many.
func TestMuchIsSaidBetweenTwoFrames(t *testing.T) {
	c := &clock{began.Add(time.Second)}
	from, to := newPool(t, c, 3, 1<<20), newPool(t, c, 3, 1<<20)
	sender, _ := NewPair(from, 7)
	from.Tell(sender)
	_, h := NewPair(to, 1)
	const requests = 3 * maxEvents / 2
	for i := range requests {
		r := send(t, from, words(fmt.Sprint("once upon a time ", i%50), 20), c.now)
		if i%2 == 0 {
			r.answer("x", c.now)
		}
		if n, k := len(sender.queue.events), len(sender.queue.hashes); n > maxEvents || k > maxHashes+100 {
			t.Fatalf("request %d: %d events and %d hashes are not written", i, n, k)
		}
	}
	for _, frame := range sender.Take(1<<20, c.now) {
		if err := h.Apply(frame, c.now, c.now); err != nil {
			t.Fatal(err)
		}
	}
	s, told := h.Stats(), sender.Stats().Records
	if s.Open != requests/2 || s.Records != told || told < requests {
		t.Errorf("%d in flight of %d requests; %d records sent, %d received", s.Open, requests, told, s.Records)
	}
}

// The receivers put together the same chains that were sent, in whatever order these share their beginnings.
func TestChainsAreWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	one, two := newChains(), newChains()
	var all [][]uint64
	sent, fresh := 0, 0
	for i := range 20_000 {
		var chain []uint64
		if len(all) > 0 && r.IntN(5) > 0 {
			of := all[r.IntN(len(all))]
			chain = slices.Clone(of[:1+r.IntN(len(of))])
			if r.IntN(2) == 0 {
				chain = slices.Clone(of)
			}
		}
		for range 1 + r.IntN(60) {
			chain = append(chain, r.Uint64()|1)
			fresh++
		}
		all = append(all, chain)
		if len(all) > 100 {
			all = all[50:]
		}
		from, to := one, two
		if r.IntN(2) == 0 {
			from, to = two, one
		}
		_, parent, depth, rest := from.enterSent(chain, position{})
		sent += len(rest)
		got, ok := to.enterReceived(parent, depth, slices.Clone(rest))
		if !ok || !slices.Equal(got, chain) {
			t.Fatalf("chain %d of %d: received %d, %v; named a beginning of %d", i, len(chain), len(got), ok, depth)
		}
		if i%3000 == 0 {
			one.age()
			two.age()
		}
	}
	if sent > fresh*5/4 {
		t.Errorf("%d hashes were sent, of which %d were new", sent, fresh)
	}
	one.sendInFull()
	if _, _, depth, _ := one.enterSent(all[0], position{}); depth != 0 {
		t.Errorf("after a restart a beginning of %d is named", depth)
	}
	if _, ok := two.enterReceived(12345, 9, nil); ok {
		t.Error("an unknown beginning is found")
	}
}

// A router that joins late replays the stream: it is as warm as the others, and has the same requests in flight.
func TestReplay(t *testing.T) {
	f := newFleet(t, 5, 2, 4, 1<<20)
	var past []letter
	for range 3000 {
		f.step(false)
		past = append(past, f.routers[0].mail...) // the frames of router 1
		f.deliver(f.routers[0])
		f.routers[0].mail = nil
	}
	f.settle()
	n := f.join()
	n.receiver.BeginReplay()
	for _, l := range past {
		if err := n.receiver.Apply(l.frame, l.sent, f.now); err != nil {
			t.Fatal(err)
		}
	}
	before := 0
	for _, s := range n.pool.Workers.Stats(f.now) {
		before += s.Theirs
	}
	n.receiver.EndReplay(f.now)
	if s := n.receiver.Stats(); before != 0 || s.Replayed == 0 || n.pool.Index.Stats().Blocks == 0 {
		t.Errorf("%d in flight during the replay; %+v", before, s)
	}
}

// TestReplayOfARouterThatEnded: a router that starts takes no router for lost that said its bye just before.
func TestReplayOfARouterThatEnded(t *testing.T) {
	c := &clock{began.Add(time.Second)}
	p := newPool(t, c, 3, 1<<20)
	_, h := NewPair(p, 1)
	sender, _ := NewPair(newPool(t, c, 3, 1<<20), 7)
	sender.QueueBeat(&Beat{Name: "old", flags: beatBye}, c.now)
	h.BeginReplay()
	if err := h.Apply(sender.Take(1<<20, c.now)[0], c.now, c.now); err != nil {
		t.Fatal(err)
	}
	h.EndReplay(c.now)
	c.pass(2 * Lease)
	if lost, _ := h.Expire(c.now, c.now, true); len(lost) > 0 {
		t.Errorf("%v count as lost; want none", lost)
	}
}

// lives collects the lives of the sessions that come.
type lives struct {
	alone
	got *[]time.Duration
}

func (l *lives) session(s Session) { *l.got = append(*l.got, s.Life) }

// TestLifeOfASession: the time that a change of a session was on its way is no part of the life that is left.
func TestLifeOfASession(t *testing.T) {
	c := &clock{began.Add(time.Second)}
	var got []time.Duration
	p := newPool(t, c, 3, 1<<20)
	secret := p.Secret()
	_, _, h := newPair(p, 1, &lives{alone: alone(secret.Fingerprint()), got: &got})
	sender, _ := NewPair(newPool(t, c, 3, 1<<20), 7)
	hear := func(replay bool) {
		sender.QueueSession(Session{Key: "k", Value: []byte("v"), Life: time.Minute}, c.now)
		c.pass(10 * time.Second) // Redis was away
		frames := sender.Take(1<<20, c.now)
		sender.Confirm(frames)
		sent := c.now
		c.pass(20 * time.Second)
		h.replay = replay
		if err := h.Apply(frames[0], sent, c.now); err != nil {
			t.Fatal(err)
		}
	}
	hear(true)
	hear(false)
	if want := []time.Duration{30 * time.Second, 30 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("%v are left; want %v", got, want)
	}
}
