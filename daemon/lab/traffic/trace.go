package traffic

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/replay"
)

// ReadTrace reads the requests of a trace, each as a chat of one turn at its own time. It knows two forms of JSON
// lines. One is Mooncake's, see replay.ReadTrace: blocks of 512 tokens, times in milliseconds. The other is that of
// Qwen's published usage traces, known by a field chat_id in the first line: blocks of 16 tokens, times in seconds, and
// parent_chat_id names the request before in the same conversation:
//
//	{"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.1, "input_length": 20, "output_length": 5, "hash_ids": [3, 9]}
//
// The name stands in errors. limit bounds the requests; 0 = no limit.
func ReadTrace(r io.Reader, name string, limit int) (Load, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	first, _ := b.Peek(64 << 10)
	if line, _, _ := bytes.Cut(first, []byte("\n")); bytes.Contains(line, []byte(`"chat_id"`)) {
		return readChats(b, name, limit)
	}
	requests, err := replay.ReadTrace(b, name, limit)
	if err != nil {
		return Load{}, err
	}
	var l Load
	for i := range requests {
		q := &requests[i]
		l.Chats = append(l.Chats, Chat{Start: q.At, Turns: []Turn{{Output: q.OutputTokens, Answer: mix(^uint64(i)),
			Parts: blocks(q.Blocks, q.InputTokens, replay.BlockTokens)}}})
	}
	return l, nil
}

// blocks returns the parts of a prompt of so many tokens, by the numbers of its blocks.
func blocks(ids []uint64, tokens, size int) (parts []Part) {
	for i, id := range ids {
		parts = append(parts, Part{ID: mix(id), Tokens: min(size, tokens-i*size)})
	}
	return parts
}

// chatBlock is the tokens that one hash id of a chat_id trace stands for.
const chatBlock = 16

// chatLine is one line of a chat_id trace.
type chatLine struct {
	Chat   int64    `json:"chat_id"`
	Parent *int64   `json:"parent_chat_id"`
	At     *float64 `json:"timestamp"`
	Input  int      `json:"input_length"`
	Output int      `json:"output_length"`
	Hashes []uint64 `json:"hash_ids"`
}

// check returns what is wrong with a line that comes after one of the time before.
func (c *chatLine) check(before float64) error {
	switch {
	case c.At == nil || c.Parent == nil:
		return errors.New("no timestamp or no parent_chat_id; give both, -1 for no parent")
	case !(*c.At >= 0 && *c.At < 366*24*3600):
		return fmt.Errorf("timestamp %v is not within a year; give seconds since the start", *c.At)
	case *c.At < before:
		return fmt.Errorf("timestamp %v is before the line above, %v; sort the trace by timestamp", *c.At, before)
	case c.Input < 1 || c.Output < 1 || c.Input > maxTokens || c.Output > maxTokens:
		return fmt.Errorf("lengths of %d and %d are not within 1 to %d; leave such requests out",
			c.Input, c.Output, maxTokens)
	case len(c.Hashes) != (c.Input+chatBlock-1)/chatBlock:
		return fmt.Errorf("%d hash_ids for input_length %d; want %d, one for each %d tokens",
			len(c.Hashes), c.Input, (c.Input+chatBlock-1)/chatBlock, chatBlock)
	}
	return nil
}

// readChats reads a trace with chat ids.
func readChats(r io.Reader, name string, limit int) (l Load, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxTokens/chatBlock*22)
	root := map[int64]int64{} // of each chat
	began, before := 0.0, 0.0
	n := 0
	for lines.Scan() && (limit == 0 || len(l.Chats) < limit) {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var c chatLine
		err := json.Unmarshal(lines.Bytes(), &c)
		if err == nil {
			err = c.check(before)
		}
		if err != nil {
			return Load{}, fmt.Errorf("traffic: %s:%d: %w", name, n, err)
		}
		if len(l.Chats) == 0 {
			began = *c.At
		}
		before = *c.At
		root[c.Chat] = c.Chat
		if of, known := root[*c.Parent]; known {
			root[c.Chat] = of
		}
		l.Chats = append(l.Chats, Chat{Session: mix(uint64(root[c.Chat])),
			Start: time.Duration(math.Round((*c.At - began) * float64(time.Second))),
			Turns: []Turn{{Parts: blocks(c.Hashes, c.Input, chatBlock), Output: c.Output, Answer: mix(^uint64(c.Chat))}}})
	}
	if err := lines.Err(); err != nil {
		return Load{}, fmt.Errorf("traffic: %s:%d: %w; a trace has one JSON object a line", name, n+1, err)
	}
	if len(l.Chats) == 0 {
		return Load{}, fmt.Errorf("traffic: %s holds no request; give a trace with one JSON object a line", name)
	}
	return l, nil
}

// Faster returns the load with its chats' starts divided by a factor: a trace of a smaller fleet for a larger one.
func (l Load) Faster(factor float64) Load {
	for i := range l.Chats {
		l.Chats[i].Start = time.Duration(float64(l.Chats[i].Start) / factor)
	}
	return l
}

// Part returns the chats that begin within a part of the load, from its beginning on; an until of 0 is the end, and a
// limit of 0 is none.
func (l Load) Part(from, until time.Duration, limit int) Load {
	part := Load{Clients: l.Clients}
	for _, c := range l.Chats {
		if c.Start < from || until > 0 && c.Start >= until || limit > 0 && len(part.Chats) >= limit {
			continue
		}
		c.Start -= from
		part.Chats = append(part.Chats, c)
	}
	return part
}

// Jitter moves each start by up to a second to either side, by a seed: another run of the same recording, whose clock
// is in whole seconds or coarser at times.
func (l Load) Jitter(seed uint64) Load {
	chance := rand.New(rand.NewPCG(seed, 0x717))
	for i := range l.Chats {
		c := &l.Chats[i]
		c.Start = max(0, c.Start+time.Duration((2*chance.Float64()-1)*float64(time.Second)))
	}
	slices.SortStableFunc(l.Chats, func(a, b Chat) int { return cmp.Compare(a.Start, b.Start) })
	return l
}
