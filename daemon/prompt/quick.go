package prompt

import "bytes"

// quick is the short way for what nearly all of a stream is: events that differ from the one before in one string only, the
// piece of text. Once such an event was read in full, its bytes before and behind that string are kept; where the next one
// has them too it means the same, and only the string is looked at. That takes a tenth of the time, and is no guess: equal
// bytes before a string put a JSON parser in the same state.
type quick struct {
	head, tail []byte // around the text; tail is empty when nothing is known
	rest       []byte // Responses number their events: what comes behind the number that ends tail, if it does
	choice     int    // whose text it is, -1: nobody's, it is only output
}

func (q *quick) forget() { q.tail = q.tail[:0] }

// quickly takes the event that the chunk begins with and gives its length, or 0 if it must be read in full.
func (r *Reply) quickly(chunk []byte) int {
	q := &r.quick
	if len(q.tail) == 0 || r.fresh || !bytes.HasPrefix(chunk, q.head) || !r.split.fresh() {
		return 0
	}
	lo := len(q.head)
	hi := closing(chunk, lo)
	if hi <= lo || !bytes.HasPrefix(chunk[hi:], q.tail) {
		return 0
	}
	end := hi + len(q.tail)
	if len(q.rest) > 0 {
		n := digits(chunk[end:])
		if n == 0 || !bytes.HasPrefix(chunk[end+n:], q.rest) {
			return 0
		}
		end += n + len(q.rest)
	}
	if q.choice >= 0 {
		a := &r.choices[q.choice]
		a.text = r.gather(a.text, chunk[lo-1:hi+1])
	}
	return end
}

// digits is the length of the whole number that b begins with, 0 if it is none.
func digits(b []byte) (n int) {
	for n < len(b) && b[n]-'0' <= 9 {
		n++
	}
	if n > 1 && b[0] == '0' {
		return 0
	}
	return n
}

// closing is the place of the quote that closes the string whose inside begins at i, 0 if there is none here.
func closing(b []byte, i int) int {
	for {
		i = special(b, i)
		switch {
		case i >= len(b) || b[i] < ' ':
			return 0
		case b[i] == '"':
			return i
		}
		n := escapeLen(b[i:])
		if n == 0 {
			return 0
		}
		i += n
	}
}

// maxQuick bounds the frame that is kept, and with it what a stream holds while its client takes nothing. vLLM's frames are
// some 250 bytes. A larger event is read in full each time.
const maxQuick = 4 << 10

// learn keeps the frame of an event that was nothing but a piece of text. Any other changes nothing: the next piece will be
// like the one before it.
func (q *quick) learn(r *Reply, ev event) {
	text, choice := r.top.piece, r.top.choice
	if ev.lines == nil || len(ev.lines) > maxQuick || !r.top.plain || r.failed || text.hi-text.lo <= 2 {
		return
	}
	lo, hi := ev.at+text.lo+1, ev.at+text.hi-1
	q.head, q.tail, q.rest, q.choice = append(q.head[:0], ev.lines[:lo]...), append(q.tail[:0], ev.lines[hi:]...), q.rest[:0], choice
	if r.kind != Responses {
		return
	}
	const number = `"sequence_number":`
	at := bytes.Index(q.tail, []byte(number)) + len(number)
	if n := digits(q.tail[at:]); at >= len(number) && n > 0 {
		q.rest, q.tail = append(q.rest, q.tail[at+n:]...), q.tail[:at]
	}
}
