package session

import (
	"errors"
	"strings"
)

// ErrFull means that the sessions that are open take all of their owner's share of the store.
var ErrFull = errors.New("session: the open sessions of this key take all of its share of cache.max_bytes")

// Shares tells a store whose share of its memory each binding takes. Its method is that of cache/tier's Owners.
type Shares struct{}

// Owner returns the key whose session a value of a namespace is. An opened session is promised to its client until its
// end. A named one, a stored response and the mark of an ended session give way to newer ones of the same key.
func (Shares) Owner(ns string, value []byte) (name string, promised, ok bool) {
	if !strings.HasPrefix(ns, Namespaces) {
		return "", false, false
	}
	b, err := decode(value)
	if err != nil {
		return "", false, true
	}
	return b.Owner, b.Kind == Opened && b.state == Found, true
}
