package tier

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// byWords has the owner in the value, OWNER:WORD, promised if the word says so.
type byWords struct{}

func (byWords) Owner(ns string, value []byte) (name string, promised, ok bool) {
	owner, word, ok := bytes.Cut(value, []byte(":"))
	return string(owner), string(word) == "promised", ok && ns == "sessions"
}

// checkShelf recounts a shelf, and returns its entries.
func checkShelf(t *testing.T, name string, s *shelf) (entries int) {
	bytes := 0
	for e := s.root.next; e != &s.root; e = e.next {
		entries++
		bytes += e.cost()
		if e.shelf != s {
			t.Errorf("%s: %q is in another shelf", name, e.key)
		}
	}
	if bytes != s.bytes {
		t.Errorf("the shelf of %s: %d bytes counted, %d there", name, s.bytes, bytes)
	}
	return entries
}

// hoard opens sessions of one owner until one is refused, and returns how many there are.
func hoard(s *Store, owner string, most int) int {
	for i := range most {
		if _, set := s.SetIfAbsent("sessions", fmt.Sprint(owner, i), []byte(owner+":promised"), time.Hour); !set {
			return i
		}
	}
	return most
}

// living counts the sessions of hoard that are there.
func living(s *Store, owner string, n int) (found int) {
	for i := range n {
		if _, ok := s.Get("sessions", fmt.Sprint(owner, i)); ok {
			found++
		}
	}
	return found
}

// TestSharesOfOwners: what one owner opens is refused at the limit of its share, and evicts nothing of another.
func TestSharesOfOwners(t *testing.T) {
	const room = 1000 // entries of half of memory
	for _, c := range []struct {
		owners      int
		least, most int // of one that floods alone
	}{{1, room * 70 / 100, room * 75 / 100}, {2, 50 * room / 100, 60 * room / 100}, {10, 36 * room / 100, 42 * room / 100}} {
		s := notRun(t, Config{MaxBytes: 2 * room * (overhead + 20), Owners: byWords{}})
		s.SetOwners(c.owners)
		before := hoard(s, "quiet", room/100)
		if got := hoard(s, "flood", 10*room); got < c.least || got > c.most {
			t.Errorf("%d owners: one that floods has %d of %d; want %d to %d", c.owners, got, room, c.least, c.most)
		}
		if got := living(s, "quiet", before); got != before {
			t.Errorf("%d owners: %d of %d sessions of another live", c.owners, got, before)
		}
		if c.owners > 1 {
			if got := hoard(s, "late", room/100); got != room/100 {
				t.Errorf("%d owners: one that comes late has room for %d", c.owners, got)
			}
		}
		for i := range 5 * room { // what is not promised gives way to its like, of its own owner
			s.Set("sessions", fmt.Sprint("named", i), []byte("flood:named"), time.Hour)
			s.Set("strategy", fmt.Sprint("value", i), []byte("quiet:value"), time.Hour)
		}
		if _, ok := s.Get("sessions", fmt.Sprint("named", 5*room-1)); !ok {
			t.Errorf("%d owners: the newest named session is not there", c.owners)
		}
		if got := living(s, "quiet", before); got != before {
			t.Errorf("%d owners: after a flood of names %d of %d sessions of another live", c.owners, got, before)
		}
		checkMemory(t, s.l1)
	}
}

// TestRoomComesBack: a session that ends leaves its place, as a mark that gives way.
func TestRoomComesBack(t *testing.T) {
	s := notRun(t, Config{MaxBytes: 100 * (overhead + 20), Owners: byWords{}})
	s.SetOwners(2)
	n := hoard(s, "a", 1000)
	if s.Room("sessions", "next", []byte("a:promised")) || !s.Room("sessions", "next", []byte("b:promised")) {
		t.Error("Room says otherwise")
	}
	old := []byte("a:promised")
	if !s.CompareAndSwap("sessions", "a0", old, []byte("a:closed"), time.Hour) {
		t.Fatal("it cannot be closed")
	}
	if got := hoard(s, "a", n+1); got != 0 { // a0 stands, closed
		t.Errorf("%d", got)
	}
	if _, set := s.SetIfAbsent("sessions", "again", old, time.Hour); !set {
		t.Error("there is no room for another")
	}
	if got := living(s, "a", n); got < n-1 {
		t.Errorf("%d of %d live", got, n)
	}
	checkMemory(t, s.l1)
}

// TestOwnersHammer: the sums stay right whatever is done, also while the number of owners changes.
func TestOwnersHammer(t *testing.T) {
	s := notRun(t, Config{MaxBytes: 100 * (overhead + 20), Owners: byWords{}})
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"promised", "named", "closed"}
	for i := range 20_000 {
		key := fmt.Sprint(r.IntN(200))
		value := fmt.Appendf(nil, "%d:%s", r.IntN(6), words[r.IntN(3)])
		switch r.IntN(6) {
		case 0:
			s.SetOwners(r.IntN(8))
		case 1:
			s.Delete("sessions", key)
		case 2:
			s.SetIfAbsent("sessions", key, value, time.Millisecond)
		case 3:
			now, _ := s.Get("sessions", key)
			s.CompareAndSwap("sessions", key, now, value, time.Hour)
		case 4:
			s.Set("other", key, value, time.Hour)
		default:
			s.Set("sessions", key, value, time.Hour)
		}
		if i%500 == 0 {
			checkMemory(t, s.l1)
		}
	}
	checkMemory(t, s.l1)
}
