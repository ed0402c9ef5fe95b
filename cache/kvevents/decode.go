package kvevents

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// Limits of one event. The longest context of today's models is 10M tokens in theory and 1M in use; one step stores
// what one step computes, or one prompt that was fetched from a shared tier.
const (
	maxBlocks = 1 << 17
	maxTokens = 1 << 22
	keepWords = 1 << 16 // of scratch kept for the next event, in tokens or hashes
)

// Decoder decodes the batches of one source in their order. It is not safe for concurrent use.
type Decoder struct {
	skipped Skipped
	stored  blocks.Stored
	group   int    // the one group of full attention whose events are handed on
	chosen  bool   // group is set
	sparse  uint64 // bits of groups without a kind that have stored a part of their blocks: they are no full attention
	e       event
}

// Skipped returns what was not handed on so far.
func (d *Decoder) Skipped() Skipped { return d.skipped }

// Decode reads one message's payload and hands its events to the sink. When it returns an error, it has already handed
// on the events before the bad place. Unknown tags, fields and keys are skipped.
func (d *Decoder) Decode(payload []byte, sink Sink) (Batch, error) {
	c := cursor{b: payload}
	var b Batch
	if n, ok := c.array(); ok {
		for i := range n {
			d.part(&c, &b, batchFields[min(i, len(batchFields)-1)], sink)
		}
		if n < 2 && !c.bad {
			return b, errShape
		}
	} else if n, ok := c.entries(); ok {
		for range n {
			key, ok := c.text()
			if !ok {
				c.skip()
			}
			d.part(&c, &b, string(key), sink)
		}
	} else if !c.bad {
		return b, errShape
	}
	if c.bad {
		return b, errShort
	}
	return b, nil
}

// batchFields are the elements of the outer array; the last stands for all that later releases may add.
var batchFields = []string{"ts", "events", "data_parallel_rank", ""}

func (d *Decoder) part(c *cursor, b *Batch, name string, sink Sink) {
	switch name {
	case "ts":
		v, ok := c.real()
		if !ok {
			c.skip()
		}
		b.At = v
	case "events":
		n, ok := c.array()
		if !ok {
			c.skip()
			return
		}
		for range n {
			if c.bad {
				return
			}
			d.event(c, b, sink)
		}
	case "data_parallel_rank":
		const most = 1 << 16
		if v, ok := c.integer(); !ok {
			c.skip()
		} else if v < most {
			b.Rank = int(v)
			b.HasRank = true
		}
	default:
		c.skip()
	}
}

// event reads one event and hands it on.
func (d *Decoder) event(c *cursor, b *Batch, sink Sink) {
	b.Events++
	e := &d.e
	e.reset()
	if n, ok := c.array(); ok {
		e.positional(c, n)
	} else if n, ok := c.entries(); ok {
		for range n {
			key, ok := c.text()
			if !ok {
				c.skip()
			}
			e.field(c, key)
		}
	} else {
		c.skip()
	}
	if c.bad {
		return
	}
	switch string(e.tag) {
	case "BlockStored":
		d.store(sink)
	case "BlockRemoved":
		b.Lost = !d.remove(sink) || b.Lost
	case "AllBlocksCleared":
		sink.Clear()
	default:
		d.skipped.Unknown++
	}
}

// fullAttention lists the kinds of groups in which a hit needs every block from the head on. Others keep a window or a
// state, and null blocks stand in their place.
var fullAttention = []string{"", "full_attention", "mla_attention", "sink_full_attention"}

// findSparse marks the group of a store that has tokens of more blocks than it has hashes. vLLM 0.20 and 0.21 name no
// kinds, and the first prompt of a group with a state or a window may be stored whole: what was believed of it is
// dropped.
func (d *Decoder) findSparse(sink Sink) {
	e := &d.e
	if !e.hasGroup || len(e.kind) > 0 || uint64(len(e.tokens)) <= uint64(len(e.hashes))*e.size {
		return
	}
	d.sparse |= 1 << e.group
	if d.chosen && d.group == int(e.group) {
		d.chosen = false
		sink.Clear()
	}
}

// ours reports whether events of the group are handed on. A hybrid model announces each block once for each group, with
// the same hash, so one group of full attention stands for all: the first that stores. A removal names its group alone.
func (d *Decoder) ours(e *event, storing bool) bool {
	group := 0
	if e.hasGroup {
		group = int(min(e.group, 1<<16))
	}
	if storing && !d.chosen {
		if len(e.kind) == 0 && (e.sliding || d.sparse>>group&1 == 1) || !slices.Contains(fullAttention, string(e.kind)) {
			return false
		}
		d.group = group
		d.chosen = true
	}
	return group == d.group && d.chosen
}

func (d *Decoder) store(sink Sink) {
	e := &d.e
	medium := mediumOf(e.medium)
	count, tokens := uint64(len(e.hashes)), uint64(len(e.tokens))
	switch {
	case e.over:
		d.skipped.Oversized++
	case bytes.EqualFold(e.locality, []byte("REMOTE")):
		d.skipped.Remote++
	case medium == blocks.Other:
		d.skipped.Medium++
	case string(e.medium) == "cpu" && tokens > 0:
		d.skipped.External++
	case e.odd, e.size > maxTokens, tokens > 0 && e.size == 0, tokens > 0 && tokens != count*e.size:
		d.skipped.Shape++
		d.findSparse(sink)
	case tokens == 0 && medium == blocks.GPU:
		d.skipped.Shape++
	case (tokens > 0 || e.hasGroup) && !d.ours(e, tokens > 0):
		d.skipped.Group++
	case count > 0:
		if !d.fill(medium) {
			d.skipped.Shape++
			return
		}
		sink.Store(&d.stored)
	}
}

// fill makes the event what the sink is given.
func (d *Decoder) fill(medium blocks.Medium) bool {
	e, s := &d.e, &d.stored
	s.Medium = medium
	s.Hashes = e.hashes
	s.Tokens = e.tokens
	s.Parent = e.parent
	s.HasParent = e.hasParent
	s.BlockSize = int(e.size)
	s.Salt = ""
	keep(&s.Session, e.session)
	switch {
	case len(e.lora) > 0:
		keep(&s.Adapter, e.lora)
	case e.hasLoraID && e.loraID != 0: // before 0.14: no request names an adapter so
		s.Adapter = "lora_id=" + strconv.FormatUint(e.loraID, 10)
	default:
		s.Adapter = ""
	}
	return readExtra(e.extra, s, e.lora)
}

// keep sets s to b, and allocates only if it is another text than before.
func keep(s *string, b []byte) {
	if *s != string(b) {
		*s = string(b)
	}
}

// remove reports whether the removal could be read.
func (d *Decoder) remove(sink Sink) bool {
	e := &d.e
	medium := mediumOf(e.medium)
	switch {
	case bytes.EqualFold(e.locality, []byte("REMOTE")):
		d.skipped.Remote++
	case medium == blocks.Other:
		d.skipped.Medium++
	case e.over:
		d.skipped.Oversized++
		return false
	case e.odd:
		d.skipped.Shape++
		return false
	case (medium == blocks.GPU || e.hasGroup) && !d.ours(e, false):
		d.skipped.Group++
	case len(e.hashes) > 0:
		sink.Remove(medium, e.hashes)
	}
	return true
}
