package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
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
const maxTraceLine = maxTraceTokens / chatBlock * 22

// Request is one line of a trace.
type Request struct {
	At           time.Duration // arrival in trace time, since the first request of the trace
	InputTokens  int
	OutputTokens int
	Blocks       []uint64 // ids of the prompt's blocks; the last may be cut short
	BlockTokens  int      // tokens that an id stands for; 0 = [BlockTokens]

	// Session is a hash of the conversation's name, 0 = none. A request comes at the earliest Delay after the end of the
	// answer before it in its session. If it is Closed, the trace has no other time for it, and At is that of the line
	// before.
	Session uint64
	Delay   time.Duration
	Closed  bool
}

type traceLine struct {
	Timestamp *int64          `json:"timestamp"`
	Input     *int            `json:"input_length"`
	Output    *int            `json:"output_length"`
	HashIDs   []uint64        `json:"hash_ids"`
	Session   json.RawMessage `json:"session_id"`
	Delay     *float64        `json:"delay"`
}

// ReadTrace reads the requests of a trace in one of two forms of JSON lines. One is that of Mooncake's published
// traces:
//
//	{"timestamp": 3000, "input_length": 1100, "output_length": 30, "hash_ids": [0, 7, 9]}
//
// with the timestamp in milliseconds, never falling from line to line, and an
// id for each 512 tokens of the prompt, the last block being cut to
// input_length. A line may name its session:
//
//	{"session_id": "a", "delay": 2500, "input_length": 1160, "output_length": 30, "hash_ids": [0, 7, 9]}
//
// Its prompt holds the whole conversation so far. With a delay in place of the timestamp, as in the session form of
// NVIDIA's aiperf, it comes so many milliseconds after the answer before it in its session has ended. The other form,
// that of Qwen's usage traces, is known by a field chat_id in the first line: see readChats. Other fields are passed
// over, and so are blank lines. ReadTrace stops after limit requests; 0 means no limit. The name appears in errors.
func ReadTrace(r io.Reader, name string, limit int) ([]Request, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	first, _ := b.Peek(64 << 10)
	var read lineReader = &mooncake{sessions: map[uint64]time.Duration{}}
	if line, _, _ := bytes.Cut(first, []byte("\n")); bytes.Contains(line, []byte(`"chat_id"`)) {
		read = &chats{root: map[int64]int64{}}
	}
	var out []Request
	lines := bufio.NewScanner(b)
	lines.Buffer(make([]byte, 64<<10), maxTraceLine)
	n := 0
	for lines.Scan() && (limit == 0 || len(out) < limit) {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		q, err := read.line(lines.Bytes(), len(out) == 0)
		if err != nil {
			return nil, fmt.Errorf("replay: %s:%d: %w", name, n, err)
		}
		out = append(out, q)
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

// lineReader reads the lines of one form of trace.
type lineReader interface {
	line(b []byte, first bool) (Request, error)
}

// mooncake reads Mooncake's form.
type mooncake struct {
	began, last int64                    // timestamps of the first line and of the newest
	sessions    map[uint64]time.Duration // arrival of each session's newest line
}

func (m *mooncake) line(b []byte, first bool) (q Request, err error) {
	l, err := parseTraceLine(b)
	if err != nil {
		return q, err
	}
	q = Request{InputTokens: *l.Input, OutputTokens: *l.Output, Blocks: l.HashIDs, BlockTokens: BlockTokens,
		Session: sessionOf(l.Session)}
	before, known := m.sessions[q.Session]
	switch {
	case l.Timestamp == nil && !known:
		return q, errors.New("it has a delay, and no line before it names its session_id; give the first one a timestamp")
	case l.Timestamp == nil:
		q.Closed, q.At, q.Delay = true, before, time.Duration(*l.Delay*float64(time.Millisecond))
		return q, nil
	case !first && *l.Timestamp < m.last:
		return q, fmt.Errorf("timestamp %d is before the line above, %d; sort the trace by timestamp", *l.Timestamp, m.last)
	case first:
		m.began = *l.Timestamp
	}
	m.last = *l.Timestamp
	q.At = time.Duration(m.last-m.began) * time.Millisecond
	if q.Session != 0 {
		m.sessions[q.Session] = q.At
	}
	return q, nil
}

// sessionOf returns the hash of a session's name, which is a JSON string or a number.
func sessionOf(name json.RawMessage) uint64 {
	if len(name) == 0 || string(name) == "null" || string(name) == `""` {
		return 0
	}
	h := fnv.New64a()
	h.Write(name)
	return h.Sum64() | 1
}

// spread moves each request by less than most, those of a session by the same time, and puts them in order again.
func spread(trace []Request, most time.Duration, seed uint64) {
	if most <= 0 {
		return
	}
	chance := rand.New(rand.NewPCG(seed, 0x5b))
	moved := map[uint64]time.Duration{}
	for i := range trace {
		q := &trace[i]
		by, known := moved[q.Session]
		if !known {
			by = time.Duration(chance.Int64N(int64(most)))
		}
		if q.Session != 0 {
			moved[q.Session] = by
		}
		q.At += by
	}
	slices.SortStableFunc(trace, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
}

// before returns for each request the one before it in its session, -1 = none.
func before(trace []Request) []int {
	of := make([]int, len(trace))
	newest := map[uint64]int{}
	for i := range trace {
		of[i] = -1
		if s := trace[i].Session; s != 0 {
			if k, known := newest[s]; known {
				of[i] = k
			}
			newest[s] = i
		}
	}
	return of
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
	case l.Timestamp == nil && l.Delay == nil:
		return l, errors.New("no timestamp; give the arrival in milliseconds since the start, or session_id and delay")
	case l.Input == nil:
		return l, errors.New("no input_length; give the prompt's tokens")
	case l.Output == nil:
		return l, errors.New("no output_length; give the answer's tokens")
	case l.Delay != nil && !(*l.Delay >= 0 && *l.Delay <= maxTimestamp):
		return l, fmt.Errorf("delay %v is not within a year; give milliseconds after the answer before", *l.Delay)
	case l.Timestamp != nil && (*l.Timestamp < 0 || *l.Timestamp > maxTimestamp):
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
