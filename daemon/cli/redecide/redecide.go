package redecide

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/transport/packed"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// Report is the result over the records.
type Report struct {
	Lines    int        `json:"lines"`
	Unheld   int        `json:"lines_without_rows"` // server.explain_log did not pick them
	Bound    int        `json:"bound"`              // the host chose the session's worker, without asking any strategy
	Unfit    int        `json:"not_judged"`         // the strategy asked for data that the records lack
	Lacks    []string   `json:"lacks,omitempty"`    // what that was, as "header x-tier"
	Decided  int        `json:"decided"`
	Agreed   int        `json:"agreed"` // the same first worker, and the same one named for the prompt
	Declined int        `json:"declined"`
	Rejected int        `json:"rejected"`          // that the recorded strategy did not reject
	Turned   int        `json:"recorded_rejected"` // of those decided; to reject them too is to agree
	Held     int        `json:"held"`              // that it would have had wait for a better worker
	Failed   int        `json:"failed"`
	Others   int        `json:"of_others,omitempty"`  // of those decided, by another strategy, whose Own the rows hold
	Other    string     `json:"last_other,omitempty"` // its name
	Last     string     `json:"last_error,omitempty"`
	Chosen   Worth      `json:"chosen"` // all that the two chose a worker for
	Recorded Worth      `json:"recorded"`
	Differ   []Decision `json:"differ"` // the first MaxShown
	Bad      []BadLine  `json:"bad_lines"`
	BadLines int        `json:"bad_lines_in_all"`

	store *Store
	asks  bool // the module can ask for names
}

// Worth is the believed gain and cost of a choice, summed over requests.
type Worth struct {
	HeldTokens float64 `json:"held_tokens"`  // of the prompts, at the workers chosen
	Seconds    float64 `json:"cost_seconds"` // by the host's own score
}

// Decision is a request that the strategy would have sent elsewhere.
type Decision struct {
	Line     int    `json:"line"`
	ID       string `json:"id"`
	Recorded string `json:"recorded"` // the worker, or "rejected with 429"
	Chosen   string `json:"chosen"`
	Reason   string `json:"reason"`
	Gain     Worth  `json:"gain"` // more tokens held, fewer seconds
}

// BadLine is a line whose decision cannot be repeated.
type BadLine struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

// MaxShown bounds the lists of a report.
const MaxShown = 20

// maxLine bounds a line: one with 64 candidates has some 40 KB.
const maxLine = 1 << 20

// record is the part of a line that Run reads.
type record struct {
	ID         string             `json:"id"`
	Frame      string             `json:"packed_frame"`
	Session    string             `json:"session"`
	Key        string             `json:"key"`  // the caller
	Pair       string             `json:"pair"` // the worker that the strategy named for the prompt
	Model      string             `json:"model"`
	Strategy   string             `json:"strategy"`
	Module     string             `json:"module_sha256"`
	Status     int                `json:"status"`
	End        string             `json:"end"`
	Labels     []string           `json:"labels"`
	Headers    map[string]*string `json:"headers"` // that the recorded strategy could see; nil = there was none
	Candidates []struct {
		Worker  string `json:"worker"`
		Skipped string `json:"skipped"`
	} `json:"candidates"`
}

// rejected reports whether the strategy turned the request away: its first candidate is then the host's, and got no
// request.
func (r *record) rejected() bool { return r.End == "rejected_by_strategy" }

// Run makes s decide the records in log again. s is of a host that is Stepped: fuel bounds a pick and time does not, so
// that each run gives the same report. store is that host's.
func Run(ctx context.Context, s *host.Strategy, store *Store, log io.Reader) (*Report, error) {
	r := &Report{Differ: []Decision{}, Bad: []BadLine{}, store: store,
		asks: slices.Contains(s.Surface().Imports, abi.Module+".str")}
	store.asked = false // the self-test may have
	in := bufio.NewReaderSize(log, maxLine)
	for ctx.Err() == nil {
		line, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of it is of no use
			_, err = in.ReadSlice('\n')
		}
		if len(line) > 0 {
			r.Lines++
			if long {
				r.bad(fmt.Errorf("it has more than %d bytes", maxLine))
			} else if text := bytes.TrimSpace(line); len(text) > 0 {
				r.take(ctx, s, text)
			}
		}
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return r, fmt.Errorf("the records cannot be read to their end: %w", err)
		}
	}
	return r, ctx.Err()
}

func (r *Report) bad(why error) {
	r.BadLines++
	if len(r.Bad) < MaxShown {
		r.Bad = append(r.Bad, BadLine{Line: r.Lines, Why: why.Error()})
	}
}

// take decides one line again.
func (r *Report) take(ctx context.Context, s *host.Strategy, line []byte) {
	var rec record
	if err := json.Unmarshal(line, &rec); err != nil {
		r.bad(fmt.Errorf("it is no JSON of an access log: %w", err))
		return
	}
	if rec.Frame == "" {
		r.Unheld++
		return
	}
	f, err := frameOf(&rec)
	if err != nil {
		r.bad(err)
		return
	}
	was := f.rowOf(rec.Candidates[0].Worker)
	switch {
	case f.Header.Bound >= 0:
		r.Bound++
		return
	case was < 0:
		r.bad(fmt.Errorf("no row is that of its first candidate, %q", rec.Candidates[0].Worker))
		return
	}
	r.decide(ctx, s, f, was)
}

// frame is a recorded frame.
type frame struct {
	host.Frame
	of    *record
	names map[uint64]string // of the workers, by key
	lacks lacking
}

// frameOf reads the frame of a record.
func frameOf(rec *record) (*frame, error) {
	text, err := base64.StdEncoding.DecodeString(rec.Frame)
	if err != nil {
		return nil, fmt.Errorf("its frame is no base64: %w", err)
	}
	raw, ok := packed.ReadTable(text, abi.HeaderSize, abi.RowSize)
	if !ok {
		return nil, errors.New("its frame ends too early")
	}
	rows := (len(raw) - abi.HeaderSize) / abi.RowSize
	if rows == 0 {
		return nil, errors.New("its frame has no rows")
	}
	if len(rec.Candidates) == 0 {
		return nil, errors.New("it has a frame and no candidates")
	}
	f := &frame{of: rec, names: map[uint64]string{}}
	f.Reset()
	f.Rows = make([]abi.Row, rows)
	in := bytes.NewReader(raw)
	_ = binary.Read(in, binary.LittleEndian, &f.Header) // the length is right
	_ = binary.Read(in, binary.LittleEndian, f.Rows)
	if v := f.Header.Version; v > abi.Version { // 0: no module was asked
		return nil, fmt.Errorf("its frame is of ABI %d.%d, and this warmpath knows %d.%d; run the one that wrote it", v>>16,
			v&0xffff, abi.Version>>16, abi.Version&0xffff)
	}
	if int(f.Header.Rows) != rows || int64(f.Header.Prefillers) >= int64(rows) {
		return nil, fmt.Errorf("its frame has %d rows, and says %d, the last %d of prefillers", rows, f.Header.Rows,
			f.Header.Prefillers)
	}
	for _, c := range rec.Candidates {
		f.names[worker.KeyOf(c.Worker)] = c.Worker
	}
	for i := range f.Rows {
		f.WorkerIDs = append(f.WorkerIDs, f.names[f.Rows[i].Key])
	}
	f.Model, f.Request, f.Caller = rec.Model, rec.ID, rec.Key
	f.Labels, f.Headers = rec.Labels, &f.lacks
	f.lacks.headers = rec.Headers
	f.OwnGiven = true // no answers are replayed, from which it could learn
	return f, nil
}

// rowOf returns the row of a worker, or -1.
func (f *frame) rowOf(name string) int {
	for i := range f.Rows {
		if f.Rows[i].Key == worker.KeyOf(name) {
			return i
		}
	}
	return -1
}

// decide compares what s chooses with row was.
func (r *Report) decide(ctx context.Context, s *host.Strategy, f *frame, was int) {
	switch pairs := s.Wants(abi.WantPair); {
	case !pairs:
		f.Rows, f.Header.Prefillers = f.Rows[:f.Choices()], 0
	case f.Header.Flags&abi.HeaderAnswer != 0 && f.Header.Prefillers == 0: // the recorded one did not ask for them
		f.lacks.note("the rows of prefillers")
	}
	scale := score.NewScale(&f.Header, f.Rows)
	if s.Wants(abi.WantCost) {
		score.Price(&f.Header, f.Rows)
	}
	worth := func(row int) Worth {
		w := &f.Rows[row]
		return Worth{HeldTokens: float64(float32(w.Matched()) * f.Header.BlockTokens), Seconds: scale.Terms(w).Cost}
	}
	live := worth(was)                                   // before the pick: it writes into the header
	if int(f.Header.Labels) != len(f.Labels) && r.asks { // it may ask for their names
		f.lacks.note("the workers' labels")
	}
	got := s.Decide(&f.Frame)
	if r.unfit(f) {
		s.Settle(ctx)
		return
	}
	r.Decided++
	if s.Own() != nil && f.of.Strategy != s.Name() && f.of.Module != s.SHA256() {
		r.Others, r.Other = r.Others+1, f.of.Strategy
	}
	if f.of.rejected() {
		r.Turned++
	}
	switch {
	case got.Fallback == "decline":
		r.Declined++
		return
	case got.Fallback != "":
		r.Failed++
		r.Last = s.Stats().LastError
		s.Settle(ctx)
		return
	case got.Hold > 0:
		r.Held++
		return
	case got.Reject != nil && f.of.rejected():
		r.Agreed++
		return
	case got.Reject != nil:
		r.Rejected++
		return
	}
	s.Settle(ctx)
	mine := worth(got.Row)
	if f.of.rejected() { // it was sent nowhere: there is nothing to gain over
		r.differ(s, f, got, fmt.Sprintf("rejected with %d", f.of.Status), Worth{})
		return
	}
	r.Chosen.add(mine, 1)
	r.Recorded.add(live, 1)
	if got.Row == was && f.pairOf(&got) == f.of.Pair {
		r.Agreed++
		return
	}
	gain := mine
	gain.add(live, -1)
	gain.Seconds = -gain.Seconds
	r.differ(s, f, got, withPair(f.of.Candidates[0].Worker, f.of.Pair), gain)
}

// pairOf returns the worker that a decision names for the prompt; "" = none, or the name has no effect.
func (f *frame) pairOf(got *host.Result) string {
	if got.Pair == 0 || f.Header.Flags&abi.HeaderAnswer == 0 {
		return ""
	}
	return f.WorkerIDs[got.Pair-1]
}

// withPair formats a worker, and the one that the strategy names for the prompt.
func withPair(id, pair string) string {
	switch pair {
	case "":
		return id
	case id:
		return id + " alone"
	}
	return id + " with " + pair
}

// differ lists a request for which s chose a worker that is not what was recorded.
func (r *Report) differ(s *host.Strategy, f *frame, got host.Result, recorded string, gain Worth) {
	if len(r.Differ) == MaxShown {
		return
	}
	reason := s.ReasonName(got.Reason)
	if reason == "" {
		reason = fmt.Sprint("reason ", got.Reason)
	}
	r.Differ = append(r.Differ, Decision{Line: r.Lines, ID: f.of.ID, Recorded: recorded,
		Chosen: withPair(f.WorkerIDs[got.Row], f.pairOf(&got)), Reason: reason, Gain: gain})
}

func (w *Worth) add(other Worth, sign float64) {
	w.HeldTokens += sign * other.HeldTokens
	w.Seconds += sign * other.Seconds
}
