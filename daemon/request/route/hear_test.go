package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// relay passes to one pool what another does, at once.
type relay struct {
	to   *scene
	open map[uint64]*Heard
	lost []uint64
	told []string
}

func (r *relay) Sent(s *Sent, chains []prompt.Chain, at time.Time) uint64 {
	var all [][]uint64
	for i := range chains {
		all = append(all, slices.Clone(chains[i].Hashes))
	}
	id := uint64(len(r.told) + 1)
	r.open[id] = r.to.Hear(s, &Outcome{At: at}, all, true, at)
	r.told = append(r.told, fmt.Sprintf("sent %d tokens, %d cached, whole %v, again %v", s.Tokens, s.Cached, s.Whole, s.Again))
	return id
}

func (r *relay) FirstByte(id uint64, at time.Time) { r.open[id].FirstByte(at) }

func (r *relay) Answer(id, space uint64, chain []uint64, at time.Time) {
	r.open[id].Answer(space, slices.Clone(chain), at, at)
}

func (r *relay) Ended(id uint64, at time.Time) {
	r.open[id].End()
	delete(r.open, id)
}

func (r *relay) Forgotten(key uint64) { r.lost = append(r.lost, key) }

// twoRouters returns two pools of the same workers. The second receives what the first does.
func twoRouters(t *testing.T, words string) (a, b *scene, r *relay) {
	a, b = newScene(t, words), newScene(t, words)
	r = &relay{to: b, open: map[uint64]*Heard{}}
	b.SetSecret(a.Secret())
	a.Tell(r)
	return a, b, r
}

// A request that one router sends is in the other's books: in flight, in its index and in its tiers.
func TestHearingIsDoing(t *testing.T) {
	a, b, r := twoRouters(t, "a b c")
	long := text("Long, long ago ", 40)
	c := a.chosen(a.asking(completion(first+1, long), Claim{}))
	to, _ := c.Next(a.now)
	trip := a.send(c, to)
	seen := b.chosen(b.asking(completion(decline, long), Claim{}))
	row := seen.fleet.frame.Rows[1]
	if row.GPU < 40 || row.InFlight != 1 || row.Wait <= 0 {
		t.Errorf("the other router sees %d blocks, %d in flight, wait %v", row.GPU, row.InFlight, row.Wait)
	}
	trip.FirstByte(a.now)
	trip.End(&judge.Outcome{Kind: judge.Answered}, End{Whole: true, Status: 200, At: a.now})
	seen = b.chosen(b.asking(completion(decline, long), Claim{}))
	if row := seen.fleet.frame.Rows[1]; row.InFlight != 0 || row.Wait != 0 || row.GPU < 40 || row.Sent != 1 {
		t.Errorf("afterwards: %+v", row)
	}
	if len(r.open) != 0 {
		t.Errorf("%d requests were never told to have ended", len(r.open))
	}
}

func TestARepeatIsToldAsOne(t *testing.T) {
	a, _, r := twoRouters(t, "a b")
	c := a.chosen(a.ask(first, Claim{}))
	for range 2 {
		to, _ := c.Next(a.now)
		trip := a.send(c, to)
		trip.End(&judge.Outcome{Kind: judge.Failed}, End{At: a.now})
	}
	if len(r.told) != 2 || strings.Contains(r.told[0], "again true") || !strings.Contains(r.told[1], "again true") {
		t.Errorf("told: %q", r.told)
	}
}

func TestADeathIsTold(t *testing.T) {
	a, b, r := twoRouters(t, "a b")
	a.served(a.asking(completion(first, text("x", 9)), Claim{}))
	a.become("a", "down")
	if len(r.lost) != 1 || r.lost[0] != worker.KeyOf("a") {
		t.Fatalf("told of %x; want %x", r.lost, worker.KeyOf("a"))
	}
	if n := b.Index.Worker(0).Blocks; n == 0 {
		t.Error("the other router forgets what it has not found dead itself")
	}
	b.Forget(r.lost[0])
	if n := b.Index.Worker(0).Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}

// Routers with one secret have one hash; another secret leaves nothing of before.
func TestSecrets(t *testing.T) {
	a, b, _ := twoRouters(t, "a")
	chains := func(s *scene) []uint64 {
		req := completion(first, text("x", 9))
		s.served(s.asking(req, Claim{}))
		return slices.Clone(req.Chains[0].Hashes)
	}
	one, same := chains(a), chains(b)
	if !slices.Equal(one, same) {
		t.Error("one secret, two hashes")
	}
	blocks := b.Index.Stats().Blocks
	b.SetSecret(a.Secret())
	if b.Index.Stats().Blocks != blocks {
		t.Error("the same secret again costs the history")
	}
	b.SetSecret(NewSecret())
	if n := b.Index.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks of the old secret are left", n)
	}
	if other := chains(b); slices.Equal(one, other) {
		t.Error("two secrets, one hash")
	}
	x, y := a.Secret(), b.Secret()
	if x.Fingerprint() == y.Fingerprint() {
		t.Error("two secrets have one fingerprint")
	}
}
