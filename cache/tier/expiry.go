package tier

import "github.com/warmpath/warmpath/cache/parts/pile"

// expiry orders entries by the time at which the sweep must look at them. An entry whose life is prolonged keeps its
// place, so that a touch costs nothing here: the sweep finds it alive and puts it back.
type expiry = pile.Pile[*entry]

// Before implements pile.Ranked.
func (e *entry) Before(other *entry) bool { return e.due < other.due }

// Place implements pile.Ranked.
func (e *entry) Place() *int { return &e.at }

// reorder moves an entry to the place of another time.
func (l *lru) reorder(e *entry, due int64) {
	e.due = due
	l.due.Put(e)
}
