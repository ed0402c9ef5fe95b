package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxEvent bounds a line of an answer: a usage event has 300 bytes, an event
// of one token about as many, and one of a whole burst some thousand.
const maxEvent = 16 << 10

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, maxEvent) }}

// usage is the part of an event that reports what the worker computed.
type usage struct {
	Prompt  int `json:"prompt_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"` // null or missing when nothing was cached
}

// cached returns the cached tokens: never more than the prompt, whatever the worker reports.
func (u *usage) cached() int { return min(max(0, u.Details.Cached), max(0, u.Prompt)) }

type lastEvent struct {
	Usage *usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

var (
	errTruncated = errors.New("stream cut short")
	errEvent     = errors.New("error event")
	errTooLong   = fmt.Errorf("event over %d bytes", maxEvent)
)

// readStream reads a streamed completion to its end. It calls first once, when
// the first event with output has come, and returns the last usage it saw, nil
// if none. Comments (keep-alives) and the opening events of other kinds do not
// count as output.
//
// No event is decoded on the way: two million of them are looked through for
// the three words, and only what carries a usage is kept, to be decoded once.
func readStream(r io.Reader, first func()) (*usage, error) {
	br := readers.Get().(*bufio.Reader)
	br.Reset(r)
	defer func() {
		br.Reset(nil)
		readers.Put(br)
	}()

	var kept []byte // the last event that had a usage
	begun, done := false, false
	for {
		line, err := br.ReadSlice('\n')
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = bytes.TrimSpace(data)
			switch {
			case string(data) == "[DONE]":
				done = true
			case bytes.Contains(data, []byte(`"error"`)) && isError(data):
				return nil, errEvent
			default:
				if !begun && hasOutput(data) {
					begun = true
					first()
				}
				if bytes.Contains(data, []byte(`"prompt_tokens"`)) {
					kept = append(kept[:0], data...)
				}
			}
		}
		if err == nil {
			continue
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, errTooLong
		}
		if err != io.EOF && !done {
			return nil, fmt.Errorf("%w: %w", errTruncated, err)
		}
		if !done {
			return nil, errTruncated
		}
		return decodeUsage(kept), nil
	}
}

// hasOutput reports whether an event has a choice: the event of the usage alone
// has an empty list, a role without content belongs to chat.
func hasOutput(data []byte) bool {
	_, rest, ok := bytes.Cut(data, []byte(`"choices":`))
	rest = bytes.TrimLeft(rest, " [")
	return ok && len(rest) > 0 && rest[0] == '{'
}

// isError reports whether an event is an error, and not text that happens to hold the word.
func isError(data []byte) bool {
	var e lastEvent
	return json.Unmarshal(data, &e) == nil && len(e.Error) > 0 && string(e.Error) != "null"
}

func decodeUsage(data []byte) *usage {
	var e lastEvent
	if len(data) == 0 || json.Unmarshal(data, &e) != nil {
		return nil
	}
	return e.Usage
}
