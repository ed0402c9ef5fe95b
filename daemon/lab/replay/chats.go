package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// chatBlock is the tokens that one hash id of a trace with chat ids stands for.
const chatBlock = 16

// chats reads the form of Qwen's published usage traces: blocks of 16 tokens, times in seconds, and parent_chat_id
// names the request before in the same conversation, -1 = none:
//
//	{"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.1, "input_length": 20, "output_length": 5, "hash_ids": [3, 9]}
type chats struct {
	began, last float64         // timestamps of the first line and of the newest
	root        map[int64]int64 // the first chat of each conversation
}

// chatLine is one line of such a trace.
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
	case c.Input < 1 || c.Output < 1 || c.Input > maxTraceTokens || c.Output > maxTraceTokens:
		return fmt.Errorf("lengths of %d and %d are not within 1 to %d; leave such requests out",
			c.Input, c.Output, maxTraceTokens)
	case len(c.Hashes) != (c.Input+chatBlock-1)/chatBlock:
		return fmt.Errorf("%d hash_ids for input_length %d; want %d, one for each %d tokens",
			len(c.Hashes), c.Input, (c.Input+chatBlock-1)/chatBlock, chatBlock)
	}
	return nil
}

func (s *chats) line(b []byte, first bool) (q Request, err error) {
	var c chatLine
	if err := json.Unmarshal(b, &c); err != nil {
		return q, fmt.Errorf("not a line of a trace with chat ids: %w", err)
	}
	if err := c.check(s.last); err != nil {
		return q, err
	}
	if first {
		s.began = *c.At
	}
	s.last = *c.At
	s.root[c.Chat] = c.Chat
	if of, known := s.root[*c.Parent]; known {
		s.root[c.Chat] = of
	}
	return Request{At: time.Duration(math.Round((*c.At - s.began) * float64(time.Second))), InputTokens: c.Input,
		OutputTokens: c.Output, Blocks: c.Hashes, BlockTokens: chatBlock, Session: mix(uint64(s.root[c.Chat]))}, nil
}
