package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// errDeadline ends a run that is not over when its grace is.
var errDeadline = errors.New("deadline")

// sample is what became of one request.
type sample struct {
	sent        bool
	late        time.Duration // wall time from when it was due to when it was sent
	ttft, total time.Duration // wall time from sending; ttft 0: no output came
	usage       *usage
	worker      string
	err         error  // nil: answered in full
	kind        string // the kind of err, a bounded set
}

// sender sends the requests of one run.
type sender struct {
	cfg    *Config
	trip   http.RoundTripper
	model  string // as JSON
	target string
	seed   uint64 // of the prompts' text, and of the sessions' names
}

func newSender(cfg *Config, trip http.RoundTripper, model string) *sender {
	quoted, _ := json.Marshal(model) // a string always has a JSON form
	name := fnv.New64a()
	name.Write([]byte(model))
	return &sender{
		cfg:    cfg,
		trip:   trip,
		model:  string(quoted),
		target: cfg.URL + "/v1/completions",
		seed:   cfg.Seed ^ name.Sum64(),
	}
}

// newTransport keeps a connection for each request that may be open: with the
// standard two a host, nearly every request would dial. Big buffers halve the
// system calls of a prompt of 50 KB.
func newTransport(maxInFlight int) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		MaxIdleConnsPerHost: maxInFlight,
		DisableCompression:  true,
		WriteBufferSize:     32 << 10,
		ReadBufferSize:      16 << 10,
	}
}

// send sends one request and follows its answer to the end; first is called
// when output begins.
func (s *sender) send(ctx context.Context, r *Request, first func()) (out sample) {
	p := newPrompt(s.cfg, s.model, s.seed, r)
	start := time.Now()
	defer func() {
		out.total = time.Since(start)
		if out.err != nil {
			out.kind = kindOf(ctx, out.err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target, &body{prompt: p})
	if err != nil {
		out.err = err
		return out
	}
	req.ContentLength = p.size()
	req.GetBody = func() (io.ReadCloser, error) { return &body{prompt: p}, nil }
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Warmpath-Explain", "1")
	if r.Session != 0 {
		req.Header.Set("X-Session-Id", strconv.FormatUint(mix(s.seed)^r.Session, 36))
	}
	// RoundTrip and not Client.Do: a redirect would be a wrong URL, to be reported.
	resp, err := s.trip.RoundTrip(req)
	if err != nil {
		out.err = err
		return out
	}
	defer resp.Body.Close()
	out.worker = resp.Header.Get("X-Warmpath-Worker")
	if resp.StatusCode != http.StatusOK {
		out.err = readStatus(resp)
		return out
	}
	out.usage, out.err = readStream(resp.Body, func() {
		out.ttft = time.Since(start)
		first()
	})
	return out
}

// statusError is an answer other than 200.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	return strings.TrimRight(fmt.Sprintf("status %d: %s", e.code, e.message), ": ")
}

// readStatus returns the message of an OpenAI-shaped error, and leaves the
// connection in a state to be used again.
func readStatus(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<10))
	var e struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &e) // another shape has no message to show
	msg := e.Error.Message
	if len(msg) > 200 {
		msg = msg[:200] + "..."
	}
	return &statusError{resp.StatusCode, msg}
}

// kindOf returns the kind of an error, of the few that a report counts.
func kindOf(ctx context.Context, err error) string {
	var status *statusError
	var op *net.OpError
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("status %d", status.code)
	case errors.Is(err, errEvent):
		return errEvent.Error()
	case errors.Is(err, errTooLong):
		return errTooLong.Error()
	case context.Cause(ctx) == errDeadline:
		return errDeadline.Error()
	case ctx.Err() != nil:
		return "canceled"
	case errors.Is(err, errTruncated):
		return errTruncated.Error()
	case errors.As(err, &op) && op.Op == "dial":
		return "connect"
	default:
		return "connection lost"
	}
}
