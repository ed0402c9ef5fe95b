package replay

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// BlockTokens is the number of tokens that one hash id of a trace stands for.
const BlockTokens = 512

// maxTraceTokens bounds the prompt and the answer of one request: sixteen
// times the longest context sold today, and far from any overflow.
const maxTraceTokens = 1 << 24

// maxTraceLine bounds one line: the ids of the longest prompt, 20 digits each.
const maxTraceLine = maxTraceTokens / BlockTokens * 22

// Request is one line of a trace.
type Request struct {
	At           time.Duration // arrival in trace time, since the first request of the trace
	InputTokens  int
	OutputTokens int
	Blocks       []uint64 // ids of the prompt's blocks; the last may be cut short
}

type traceLine struct {
	Timestamp *int64   `json:"timestamp"`
	Input     *int     `json:"input_length"`
	Output    *int     `json:"output_length"`
	HashIDs   []uint64 `json:"hash_ids"`
}

// ReadTrace reads JSON lines in the form of Mooncake's published traces:
//
//	{"timestamp": 3000, "input_length": 1100, "output_length": 30, "hash_ids": [0, 7, 9]}
//
// with the timestamp in milliseconds, never falling from line to line, and an
// id for each 512 tokens of the prompt, the last block being cut to
// input_length. Other fields are passed over, and so are blank lines. It stops
// after limit requests; 0 means no limit. The name appears in errors.
func ReadTrace(r io.Reader, name string, limit int) ([]Request, error) {
	var out []Request
	var first, last int64
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxTraceLine)
	n := 0
	for lines.Scan() && (limit == 0 || len(out) < limit) {
		n++
		if len(lines.Bytes()) == 0 {
			continue
		}
		l, err := parseTraceLine(lines.Bytes())
		if err == nil && len(out) > 0 && *l.Timestamp < last {
			err = fmt.Errorf("timestamp %d is before the line above, %d; sort the trace by timestamp", *l.Timestamp, last)
		}
		if err != nil {
			return nil, fmt.Errorf("replay: %s:%d: %w", name, n, err)
		}
		last = *l.Timestamp
		if len(out) == 0 {
			first = last
		}
		out = append(out, Request{
			At:           time.Duration(last-first) * time.Millisecond,
			InputTokens:  *l.Input,
			OutputTokens: *l.Output,
			Blocks:       l.HashIDs,
		})
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("replay: %s:%d: line is longer than %d bytes; a trace has one JSON object a line",
			name, n+1, maxTraceLine)
	} else if err != nil {
		return nil, fmt.Errorf("replay: reading the trace %s: %w", name, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("replay: %s holds no request; give a trace with one JSON object a line", name)
	}
	return out, nil
}

// spread moves each request by less than most, and puts them in order again.
func spread(trace []Request, most time.Duration, seed uint64) {
	if most <= 0 {
		return
	}
	chance := rand.New(rand.NewPCG(seed, 0x5b))
	for i := range trace {
		trace[i].At += time.Duration(chance.Int64N(int64(most)))
	}
	slices.SortStableFunc(trace, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
}

// maxTimestamp is a year in milliseconds: past it the file is not in
// milliseconds since its start, and a Duration is still far from overflowing.
const maxTimestamp = 366 * 24 * 3600 * 1000

func parseTraceLine(b []byte) (traceLine, error) {
	var l traceLine
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("not a trace line: %w; "+
			"want {\"timestamp\": ms, \"input_length\", \"output_length\", \"hash_ids\"}, whole numbers", err)
	}
	switch {
	case l.Timestamp == nil:
		return l, errors.New("no timestamp; give the arrival in milliseconds since the start")
	case l.Input == nil:
		return l, errors.New("no input_length; give the prompt's tokens")
	case l.Output == nil:
		return l, errors.New("no output_length; give the answer's tokens")
	case *l.Timestamp < 0 || *l.Timestamp > maxTimestamp:
		return l, fmt.Errorf("timestamp %d is not within a year; give milliseconds since the start", *l.Timestamp)
	case *l.Input < 1 || *l.Input > maxTraceTokens:
		return l, fmt.Errorf("input_length %d is not within 1 to %d; leave such requests out", *l.Input, maxTraceTokens)
	case *l.Output < 1 || *l.Output > maxTraceTokens:
		return l, fmt.Errorf("output_length %d is not within 1 to %d; leave such requests out", *l.Output, maxTraceTokens)
	}
	if want := (*l.Input + BlockTokens - 1) / BlockTokens; len(l.HashIDs) != want {
		return l, fmt.Errorf("%d hash_ids for input_length %d; want %d, one for each %d tokens",
			len(l.HashIDs), *l.Input, want, BlockTokens)
	}
	return l, nil
}

func readTraceFile(path string, limit int) ([]Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("replay: the trace cannot be read: %w; give a file of JSON lines", err)
	}
	defer f.Close()
	return ReadTrace(f, path, limit)
}
