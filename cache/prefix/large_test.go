package prefix

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// largeFleet is an index of that many workers, which all hold a system prompt, and some of them a conversation.
func largeFleet(workers int) (x *Index, n *Namespace, system []uint64, chats [][]uint64) {
	x = New(Config{Capacity: 1 << 20})
	n = x.Namespace("m")
	system = chained([]byte("the same for all"))
	for slot := range workers {
		x.SetCapacity(uint32(slot), 1<<20)
		n.Touch(uint32(slot), system)
	}
	for i := range 50 {
		chat := chained(append([]byte("the same for all"), byte(i), byte(i>>1), byte(i)))
		for k := range i % 4 {
			n.Touch(uint32(i*61+k*7)%uint32(workers), chat)
		}
		chats = append(chats, chat)
	}
	return x, n, system, chats
}

// A fleet larger than Config.Workers is known to its last worker, and a look at a few of them finds what each holds.
func TestMoreWorkersThanConfigured(t *testing.T) {
	const workers = 3000
	x, n, system, chats := largeFleet(workers)
	r := rand.New(rand.NewPCG(1, 2))
	for _, chat := range append(chats, system, chained([]byte("never seen"))) {
		slots := []uint32{workers - 1}
		for range 20 {
			slots = append(slots, r.Uint32N(workers))
		}
		for i := range 50 {
			slots = append(slots, uint32(i*61)%workers)
		}
		out := make([]uint32, len(slots))
		n.Match(chat, slots, out)
		for i, slot := range slots {
			if want := n.MatchOne(chat, slot); out[i] != want {
				t.Fatalf("worker %d holds %d blocks; want %d", slot, out[i], want)
			}
		}
	}
	x.SetCapacity(MaxWorkers, 1)
	n.Touch(MaxWorkers, system)
	if n.MatchOne(system, MaxWorkers) != 0 {
		t.Error("a worker beyond MaxWorkers is known")
	}
	if err := x.check(); err != nil {
		t.Error(err)
	}
}

// Holders has those that hold the most first, each once, and no more than the limit.
func TestHoldersOfAChain(t *testing.T) {
	const workers = 3000
	_, n, system, chats := largeFleet(workers)
	for _, chat := range chats {
		var deep []uint32
		for slot := range uint32(workers) {
			if n.MatchOne(chat, slot) > uint32(len(system)) {
				deep = append(deep, slot)
			}
		}
		got := n.Holders(chat, 100, nil)
		if len(got) != 100 {
			t.Fatalf("%d holders; want 100", len(got))
		}
		seen := map[uint32]bool{}
		for i, h := range got {
			if want := n.MatchOne(chat, h.Slot); h.Blocks != want || seen[h.Slot] || i > 0 && h.Blocks > got[i-1].Blocks {
				t.Fatalf("holder %d of %v: worker %d holds %d blocks", i, got[:i+1], h.Slot, want)
			}
			seen[h.Slot] = true
		}
		if missed := slices.DeleteFunc(deep, func(s uint32) bool { return seen[s] }); len(missed) > 0 {
			t.Fatalf("workers %v hold the most, and are left out", missed)
		}
	}
	if got := n.Holders(chained([]byte("never seen")), 100, nil); len(got) != 0 {
		t.Errorf("%v hold what nobody was sent", got)
	}
	if n.Holders(chats[1], 100, nil)[90].Slot == n.Holders(chats[2], 100, nil)[90].Slot {
		t.Error("the same workers stand for all others whatever the chain is")
	}
	room := make([]Holder, 0, 100)
	if allocs := testing.AllocsPerRun(100, func() { n.Holders(system, 100, room) }); allocs > 0 && !raceEnabled {
		t.Errorf("%v allocations", allocs)
	}
}
