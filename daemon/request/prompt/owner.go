package prompt

import "bytes"

// Mark is what shows whose answer it is: the request's id, which vLLM puts into the id of the answer.
type Mark struct {
	ID     string // the request's, as the worker got it; "" = not known
	Frame  Frame  // of the worker's ids; means nothing unless Strict
	Strict bool   // an answer with an id that does not fit has failed: see [Reply.Foreign]
}

// Frame is where in its own ids a worker puts that of the request.
type Frame struct {
	Before, After int  // the number of bytes before and after it
	Loose         bool // it may be anywhere
}

// Owner is what the ids of an answer show about the request that it belongs to.
type Owner uint8

// All ids of an answer count.
const (
	OwnerUnknown Owner = iota // no id has come
	OwnerSame                 // each holds the request's
	OwnerOther                // one does not
)

// ownership compares the ids of an answer with that of its request.
type ownership struct {
	mark  Mark
	owner Owner
	frame Frame // of the first id
}

// see takes an id. It returns true if the mark says that the answer with such an id belongs to another request.
func (o *ownership) see(id []byte) (foreign bool) {
	own := o.mark.ID
	if own == "" {
		return false
	}
	at, exact := o.mark.place(id)
	if o.owner == OwnerUnknown {
		o.owner = OwnerSame
		o.frame = Frame{Before: max(at, 0), After: len(id) - max(at, 0) - len(own)}
	}
	if at < 0 {
		o.owner = OwnerOther
	}
	return o.mark.Strict && !exact && (at < 0 || !o.mark.Frame.Loose)
}

// place returns where an id has the request's, negative if nowhere, and whether that is the frame. It counts, since a
// short id of a client's may be part of any.
func (m *Mark) place(id []byte) (at int, exact bool) {
	f := &m.Frame
	if len(id) == f.Before+len(m.ID)+f.After && string(id[f.Before:f.Before+len(m.ID)]) == m.ID {
		return f.Before, true
	}
	return bytes.Index(id, []byte(m.ID)), false
}

// maxLead bounds where the id of a body that comes in pieces is looked for before its end.
const maxLead = maxID + 64

// leadingID returns the inside of the id that a body begins with, as all answers of vLLM do that have one. It returns
// nil if the answer has none, or not all of it has arrived.
func leadingID(body []byte) []byte {
	for _, token := range [...]string{"{", `"id"`, ":", `"`} {
		body = bytes.TrimLeft(body, " \t\r\n")
		if !bytes.HasPrefix(body, []byte(token)) {
			return nil
		}
		body = body[len(token):]
	}
	return body[:closing(body, 0)]
}
