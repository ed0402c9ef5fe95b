package evict

// s3FIFO is the policy of "FIFO Queues are All You Need for Cache Eviction" (Yang and others, SOSP 2023), by bytes. New
// items wait in small, a tenth of all. An item that was read there more than once goes on to main. Any other leaves,
// and its hash stays in the ghost, which has room for as many items as are held. An item that comes back in that time
// goes to main at once. So a scan of values that are not read again passes through small and leaves main alone.
type s3FIFO[T any] struct {
	small, main list[T]
	ghost       ghost
}

const (
	smallShare = 10 // small is one part in ten
	mostUses   = 3  // more reads than that do not keep an item in main for longer
)

func newS3FIFO[T any]() *s3FIFO[T] {
	s := &s3FIFO[T]{ghost: ghost{known: map[uint64]int64{}}}
	s.small.init()
	s.main.init()
	return s
}

func (s *s3FIFO[T]) Add(i *Item[T]) {
	i.uses = 0
	if s.ghost.forget(i.Hash) {
		s.main.pushFront(i)
		return
	}
	s.small.pushFront(i)
}

func (s *s3FIFO[T]) Touch(i *Item[T]) { i.uses = min(i.uses+1, mostUses) }

func (s *s3FIFO[T]) Remove(i *Item[T]) {
	if i.in != nil {
		i.in.remove(i)
	}
}

func (s *s3FIFO[T]) Victim(free func(*Item[T]) bool) *Item[T] {
	// A round takes a read off an item, or moves an item on: so many rounds find a victim if there is one.
	for range (mostUses + 2) * (s.small.n + s.main.n) {
		if s.small.n > 0 && (s.main.n == 0 || s.small.bytes*smallShare > s.small.bytes+s.main.bytes) {
			if v := s.fromSmall(free); v != nil {
				return v
			}
		} else if v := s.fromMain(free); v != nil {
			return v
		}
	}
	// A free item may be where the shares above do not search.
	if v := s.small.takeBack(free); v != nil {
		return v
	}
	return s.main.takeBack(free)
}

// fromSmall takes small's oldest item: it leaves, goes on to main, or starts again because it is in use.
func (s *s3FIFO[T]) fromSmall(free func(*Item[T]) bool) *Item[T] {
	i := s.small.back()
	switch {
	case i.uses > 1:
		s.small.remove(i)
		i.uses = 0
		s.main.pushFront(i)
		return nil
	case !free(i):
		s.small.toFront(i)
		return nil
	}
	s.small.remove(i)
	s.ghost.remember(i.Hash, s.small.n+s.main.n+1)
	return i
}

// fromMain takes main's oldest item: it leaves, or starts again because it was read or is in use.
func (s *s3FIFO[T]) fromMain(free func(*Item[T]) bool) *Item[T] {
	i := s.main.back()
	if i == nil {
		return nil
	}
	if i.uses > 0 || !free(i) {
		i.uses -= min(i.uses, 1)
		s.main.toFront(i)
		return nil
	}
	s.main.remove(i)
	return i
}

// ghost remembers the hashes of items that left small. Each line has a number, and known[hash] is the number of the
// hash's newest line: older lines of the same hash are void.
type ghost struct {
	lines []ghostLine
	known map[uint64]int64
	last  int64
}

type ghostLine struct {
	hash uint64
	no   int64
}

// remember adds a hash, and drops the oldest lines until so many are left.
func (g *ghost) remember(hash uint64, most int) {
	g.last++
	g.lines = append(g.lines, ghostLine{hash: hash, no: g.last})
	g.known[hash] = g.last
	for len(g.lines) > most {
		old := g.lines[0]
		g.lines = g.lines[1:]
		if g.known[old.hash] == old.no {
			delete(g.known, old.hash)
		}
	}
}

// forget removes a hash, and reports whether it was there.
func (g *ghost) forget(hash uint64) bool {
	_, ok := g.known[hash]
	delete(g.known, hash)
	return ok
}
