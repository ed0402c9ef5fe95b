package lmcache

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/warmpath/warmpath/cache/parts/quota"
)

// The bounds of what a request to the coordinator unfolds into. Its entries are judged one by one, as they come: a body
// of megabytes takes ten to a hundred times its length once it is decoded.
const (
	maxItem    = 256 << 10 // bytes of one entry: a chunk's 16,384 tokens take half
	freeItem   = 32 << 10  // bytes that each connection may hold beside what is counted
	heldItems  = 32 << 20  // bytes that all of them may hold
	unfolded   = 4         // bytes counted for each byte of an entry: the decoder's buffer and what it makes
	maxBatch   = 1 << 16   // entries of one batch
	maxLookup  = 1 << 16   // keys, and parts of a prompt, of one look-up
	maxPrompt  = 1 << 20   // tokens of one
	tokenBytes = 8         // of memory, while a list of them grows
)

var errLongItem = fmt.Errorf("an entry or a field is longer than %d bytes", maxItem)

// items reads a request's JSON item by item. What it holds is counted for all connections together.
type items struct {
	body  io.Reader
	json  *json.Decoder
	left  int64 // bytes that may still be read for the item in hand
	kept  int64 // bytes of what the caller keeps
	share *quota.Share
}

func newItems(body io.Reader, held *quota.Bytes) *items {
	x := &items{body: body, left: maxItem, share: quota.NewShare(held, freeItem)}
	x.json = json.NewDecoder(x)
	return x
}

// Read reads no more of the body than the item in hand may have.
func (x *items) Read(p []byte) (int, error) {
	if x.left <= 0 {
		return 0, errLongItem
	}
	n, err := x.body.Read(p[:min(int64(len(p)), x.left)])
	x.left -= int64(n)
	if full := x.keep(0); full != nil {
		return 0, full
	}
	return n, err
}

// keep counts bytes that the caller keeps until close.
func (x *items) keep(n int64) error {
	x.kept += n
	return x.share.Grow(x.kept + unfolded*(maxItem-x.left))
}

// close gives back what was counted.
func (x *items) close() { x.share.Drop() }

// value reads one value. nil skips it.
func (x *items) value(into any) error {
	x.left = maxItem
	if into == nil {
		into = &json.RawMessage{}
	}
	return x.json.Decode(into)
}

// object reads {...} and calls each with the name of a field, whose value each reads.
func (x *items) object(each func(name string) error) error {
	if err := x.expect('{'); err != nil {
		return err
	}
	for x.json.More() {
		x.left = maxItem
		name, err := x.json.Token()
		if err != nil {
			return err
		}
		text, _ := name.(string) // the decoder lets nothing else stand there
		if err := each(text); err != nil {
			return err
		}
	}
	return x.expect('}')
}

// list reads [...] and calls each once for every element, to read it. null is empty.
func (x *items) list(each func() error) error {
	x.left = maxItem
	first, err := x.json.Token()
	if err != nil || first == nil {
		return err
	}
	if first != json.Delim('[') {
		return fmt.Errorf("%v; want a list", first)
	}
	for x.json.More() {
		if err := each(); err != nil {
			return err
		}
	}
	return x.expect(']')
}

func (x *items) expect(want json.Delim) error {
	x.left = maxItem
	got, err := x.json.Token()
	if err == nil && got != want {
		err = fmt.Errorf("%v; want %v", got, want)
	}
	return err
}

// batches reads {"batches": [...]} and calls each with every batch. Other fields are skipped.
func (x *items) batches(each func(*batch) error) error {
	return x.object(func(name string) error {
		if name != "batches" {
			return x.value(nil)
		}
		return x.list(func() error {
			x.kept = 0
			b, err := x.batch()
			if err == nil {
				err = each(b)
			}
			return err
		})
	})
}

func (x *items) batch() (*batch, error) {
	b := new(batch)
	fields := map[string]any{"instance_id": &b.Instance, "incarnation": &b.Incarnation, "seq": &b.Seq,
		"event_type": &b.Type, "tier": &b.Tier, "backend": &b.Backend, "shared": &b.Shared}
	err := x.object(func(name string) error {
		if name == "entries" {
			return x.list(func() error { return x.entry(b) })
		}
		return x.value(fields[name])
	})
	if err == nil && len(b.Instance) > maxName {
		err = fmt.Errorf("an instance_id of %d bytes; at most %d", len(b.Instance), maxName)
	}
	return b, err
}

// partBytes is what a part takes while a list of them grows.
const partBytes = 96

func (x *items) entry(b *batch) error {
	var e entry
	if err := x.value(&e); err != nil {
		return err
	}
	if len(b.parts) == maxBatch {
		return fmt.Errorf("over %d entries in a batch", maxBatch)
	}
	before := len(b.parts)
	b.add(&e)
	kept := int64(partBytes * (len(b.parts) - before))
	if kept > 0 && (before == 0 || b.parts[before].model != b.parts[before-1].model) {
		kept += int64(len(e.Key.Model))
	}
	return x.keep(kept)
}
