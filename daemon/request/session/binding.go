package session

import (
	"encoding/binary"
	"errors"
	"time"
)

// Kind is how a session came to be, and with that what its end means.
type Kind uint8

const (
	// Opened by NEW_SESSION or POST /sessions: it has a fixed end, and an unknown id is the caller's mistake.
	Opened Kind = iota
	// Key is a name that the client made up, or a cookie of ours: it lasts a time from its last use, and an unknown one
	// opens.
	Key
	// Response is the id of a stored response: as Key, but bound by the answer and never by a request.
	Response

	kinds
)

// String returns the kind's name in metrics and on pages.
func (k Kind) String() string { return [...]string{"opened", "key", "response", "?"}[min(k, kinds)] }

// Name identifies a session. Sessions of different tenants are strangers even if their ids are alike.
type Name struct {
	Kind   Kind
	Tenant string // whose it is: the API key's name, the cache salt, or both; "" = everybody's
	Owner  string // whose share of the store it takes: the API key's name; "" = everybody's
	ID     string // as the client knows it
}

// Binding is where a session lives.
type Binding struct {
	Worker        string    // the worker's id
	Kind          Kind      // of the name that it stands under
	Minted        bool      // the worker named the session and holds its state, which dies with it
	Heard         bool      // the worker answered the opening, and may hold state for it: it must get the close too
	state         Status    // Found while it lives, else why it ended
	WorkerSession string    // what the worker calls it, if the client knows it by another id; "" = the same
	Owner         string    // of the name that it stands under; "" in a binding of an older router
	Created       time.Time // to the millisecond
	Expires       time.Time // to the second; zero for kinds that last from their last use
}

// Upstream returns the session's id at the worker, for the header of a worker that holds the state itself.
func (b *Binding) Upstream(id string) string {
	if b.WorkerSession != "" {
		return b.WorkerSession
	}
	return id
}

// Status is what became of a session.
type Status uint8

const (
	Found   Status = iota // it lives
	Unknown               // the store has nothing under the name
	Expired               // its fixed end has come
	Closed                // its client closed it
	Lost                  // its worker died with its state
	Silent                // unknown for now: the store does not answer, and this router does not hold the session

	statuses
)

// String returns the status's name in metrics and messages.
func (s Status) String() string {
	return [...]string{"found", "unknown", "expired", "closed", "lost", "silent", "?"}[min(s, statuses)]
}

// A stored binding is
//
//	version 1 | state | kind | flags (1 = minted, 2 = heard) |
//	created, varint of Unix ms | expires, varint of Unix s, 0 = none |
//	uvarint length and bytes of the worker's id | the same of its name for the session | the same of its owner,
//	unless that is empty
//
// What follows is ignored, so that a newer router can add to it while older ones share its store. Another version is
// taken for nothing at all: the session is unknown.
const version = 1

const (
	flagMinted = 1 << iota
	flagHeard
)

// encode appends nothing that could be read as an address or a prompt: a Redis with the values may have other
// readers.
func (b *Binding) encode() []byte {
	out := make([]byte, 0, 40+len(b.Worker)+len(b.WorkerSession)+len(b.Owner))
	flags := byte(0)
	if b.Minted {
		flags |= flagMinted
	}
	if b.Heard {
		flags |= flagHeard
	}
	out = append(out, version, byte(b.state), byte(b.Kind), flags)
	out = binary.AppendVarint(out, b.Created.UnixMilli())
	expires := int64(0)
	if !b.Expires.IsZero() {
		expires = b.Expires.Unix()
	}
	out = binary.AppendVarint(out, expires)
	for i, s := range [...]string{b.Worker, b.WorkerSession, b.Owner} {
		if i == 2 && s == "" {
			break
		}
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	return out
}

var errValue = errors.New("session: a stored value is no binding of a known version; it is taken for unknown")

// decode reads what encode wrote.
func decode(v []byte) (Binding, error) {
	if len(v) < 4 || v[0] != version || v[1] > byte(Lost) || v[2] >= byte(kinds) {
		return Binding{}, errValue
	}
	b := Binding{state: Status(v[1]), Kind: Kind(v[2]), Minted: v[3]&flagMinted != 0, Heard: v[3]&flagHeard != 0}
	v = v[4:]
	var times [2]int64
	for i := range times {
		t, n := binary.Varint(v)
		if n <= 0 {
			return Binding{}, errValue
		}
		times[i] = t
		v = v[n:]
	}
	b.Created = time.UnixMilli(times[0]).UTC()
	if times[1] != 0 {
		b.Expires = time.Unix(times[1], 0).UTC()
	}
	for i, s := range [...]*string{&b.Worker, &b.WorkerSession, &b.Owner} {
		length, n := binary.Uvarint(v)
		if n <= 0 || length > uint64(len(v)-n) {
			if i == 2 { // an older router wrote none
				break
			}
			return Binding{}, errValue
		}
		end := n + int(length)
		*s = string(v[n:end])
		v = v[end:]
	}
	return b, nil
}
