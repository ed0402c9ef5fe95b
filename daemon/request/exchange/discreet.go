package exchange

import (
	"bytes"
	"io"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/sse"
)

// discreet reads a stream without the usage that only the router has asked for.
type discreet struct {
	from  io.Reader
	reply *prompt.Reply // gets each usage
	held  []byte        // the beginning of an event
	long  bool          // of one that is too long to be held: it goes on as it is
	out   []byte        // to be read
	room  []byte        // of out
	err   error         // what comes behind out
}

// Read implements io.Reader.
func (d *discreet) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		if d.err != nil || len(p) == 0 {
			return 0, d.err
		}
		n, err := d.from.Read(p)
		d.err = err
		if n > 0 && len(d.held) == 0 && !bytes.Contains(p[:n], usageField) && sse.LastEnd(p[:n]) == n {
			return n, nil
		}
		looked := len(d.held)
		d.held = append(d.held, p[:n]...)
		d.take(looked)
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// maxEvent bounds the beginning of an event that is held. A longer one has no usage of its own.
const maxEvent = 1 << 20

var usageField = []byte(`"usage"`)

// take makes the whole events ready, and what is left behind the last one if nothing follows. No end of an event is in
// the bytes that were looked at.
func (d *discreet) take(looked int) {
	d.out = d.room[:0]
	rest := d.held
	for end := sse.FirstEnd(rest, max(0, looked-3)); end >= 0; end = sse.FirstEnd(rest, 0) {
		d.takeEvent(rest[:end])
		d.long, rest = false, rest[end:]
	}
	switch {
	case d.err != nil:
		d.takeEvent(rest)
		rest = nil
	case d.long || len(rest) > maxEvent:
		d.long = true
		keep := len(rest) - min(len(rest), 3) // the event's end may have begun
		d.out, rest = append(d.out, rest[:keep]...), rest[keep:]
	}
	switch {
	case cap(d.held) > maxEvent && len(rest) <= maxEvent/2:
		d.held = bytes.Clone(rest)
	case len(rest) < len(d.held):
		d.held = append(d.held[:0], rest...)
	}
	d.room = d.out
}

// takeEvent makes an event ready, without its usage. One that has nothing else is left out.
func (d *discreet) takeEvent(event []byte) {
	if d.long || !bytes.Contains(event, usageField) {
		d.out = append(d.out, event...)
		return
	}
	text := dataOf(event)
	var choices, usage []byte
	hi := 0
	prompt.Fields(text, func(name, value []byte) bool {
		switch string(name) {
		case "choices":
			choices = value
		case "usage":
			usage, hi = value, cap(text)-cap(value)+len(value)
		}
		return true
	})
	lo := bytes.LastIndex(text[:hi-len(usage)], usageField)
	if choices == nil || lo < 0 {
		d.out = append(d.out, event...)
		return
	}
	if usage[0] == '{' {
		d.reply.ReadUsage(usage)
		if len(bytes.Trim(choices, "[] \t\r\n")) == 0 {
			return
		}
	}
	before := bytes.TrimRight(text[:lo], " ")
	if bytes.HasSuffix(before, []byte{','}) {
		lo = len(before) - 1
	} else if rest := bytes.TrimLeft(text[hi:], " "); bytes.HasPrefix(rest, []byte{','}) {
		hi = len(text) - len(bytes.TrimLeft(rest[1:], " "))
	}
	d.out = append(append(d.out, event[:lo]...), event[hi:]...)
}

// dataOf returns the data of an event, each byte at its place: spaces are in place of all else.
func dataOf(event []byte) []byte {
	text := bytes.Clone(event)
	for line := range bytes.Lines(text) {
		data, is := bytes.CutPrefix(line, []byte("data:"))
		for i := range line {
			if !is || i < len(line)-len(data) || line[i] < ' ' {
				line[i] = ' '
			}
		}
	}
	return text
}
