package admission

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/overflow"
)

// arriving is a Tail that gives text, and then an error.
type arriving struct {
	strings.Reader
	end    error
	passed bool
}

func (a *arriving) Read(p []byte) (int, error) {
	a.passed = true
	n, err := a.Reader.Read(p)
	if err == io.EOF {
		err = a.end
	}
	return n, err
}

func (a *arriving) Passed() bool { return a.passed }

// uncounted is a Meter of requests that are shed at most.
type uncounted struct{ journal.Meter }

func (uncounted) Shed(string, string) {}

// longRequest is a request of which memory holds the first 100 bytes.
func longRequest(t *testing.T, in *message.Inbound, body string, end error, limits overflow.Limits) *Request {
	t.Helper()
	j := journal.New(slog.New(slog.DiscardHandler), uncounted{}, nil)
	r := &Request{Journal: j, In: in, Epoch: &epoch.Epoch{Overflow: limits}, Kept: new(Kept)}
	const held = 100
	in.Epoch, in.Body = r.Epoch, []byte(body[:held])
	in.Tail, in.Left = &arriving{Reader: *strings.NewReader(body[held:]), end: end}, int64(len(body)-held)
	r.Read.Parse(in, "")
	t.Cleanup(func() {
		r.Read.release()
		in.DropKept()
		in.DropKept() // a second time is nothing
		if n := r.Kept.Overflow.Taken(); n != 0 {
			t.Errorf("%.40s: %d bytes are left", body, n)
		}
	})
	return r
}

// TestKeepMore: how much is read of a body whose model is enough, and that what is left may be sent once.
func TestKeepMore(t *testing.T) {
	limits := overflow.Limits{Dir: t.TempDir(), Most: 1 << 20}
	late := `{"messages":"` + strings.Repeat("x", 150) + `","model":"m","more":"`
	f := func(body string, enough bool, model string, kept int) {
		t.Helper()
		in := inbound("POST", "/v1/chat/completions", "")
		r := longRequest(t, in, body, io.EOF, limits)
		if err := keepMore(t.Context(), r, enough); err != nil {
			t.Fatal(err)
		}
		if r.Read.Req.Model != model || string(in.Body) != body[:kept] || in.Left != int64(len(body)-kept) || (in.Tail == nil) != (kept == len(body)) {
			t.Errorf("%d bytes: model %q, %d kept, %d left, Tail %v; want %q, %d", len(body), r.Read.Req.Model, len(in.Body), in.Left, in.Tail,
				model, kept)
		}
		if in.Tail == nil {
			return
		}
		if r.Consumed() {
			t.Error("the request counts as used up, and nothing of it is gone")
		}
		if rest, err := io.ReadAll(in.Tail); string(rest) != body[kept:] || err != nil || !r.Consumed() {
			t.Errorf("the rest: %d bytes, %v, used up %v", len(rest), err, r.Consumed())
		}
	}
	f(late+`y"}`, true, "m", len(late)+3)
	f(late+strings.Repeat("y", 5000)+`"}`, true, "m", 200)
	f(late+strings.Repeat("y", 5000)+`"}`, false, "m", len(late)+5002)
	f(`{"messages":"`+strings.Repeat("x", 1000)+`","model":"m"}`+strings.Repeat(" ", 5000), true, "m", 1600)
	f(`{"messages":"`+strings.Repeat("x", 1000)+`"}`, true, "", 1015)
}

// TestReadOn: what a request for which all of the body is needed gets, by what becomes of that.
func TestReadOn(t *testing.T) {
	bob, dir := callerOf(t, "m"), t.TempDir()
	good := `{"model":"m","messages":"` + strings.Repeat("x", 1000) + `"}`
	left := errors.New("the client left")
	f := func(what, code string, status int, body string, end error, limits overflow.Limits, ctx context.Context) {
		t.Helper()
		in := inbound("POST", "/v1/chat/completions", "")
		in.Caller = bob
		r := longRequest(t, in, body, end, limits)
		var got message.Fault
		if f := ReadOn(ctx, r); f != nil {
			got = *f
		}
		if got.Status != status || got.Code != code {
			t.Errorf("%s: %d %s; want %d %s", what, got.Status, got.Code, status, code)
		}
		if whole := in.Tail == nil && string(in.Body) == body; whole != (status == 0 && limits.Most > 0) {
			t.Errorf("%s: %d bytes, Tail %v", what, len(in.Body), in.Tail)
		}
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(message.ErrClientGone)
	room := overflow.Limits{Dir: dir, Most: 1 << 20}
	f("all of it", "", 0, good, io.EOF, room, t.Context())
	f("none is kept", "", 0, good, io.EOF, overflow.Limits{Dir: dir}, t.Context()) // forbidden refuses it
	f("over the room", "body_too_large", 413, good, io.EOF, overflow.Limits{Dir: dir, Most: 500}, t.Context())
	f("no folder", "body_not_kept", 503, good, io.EOF, overflow.Limits{Dir: dir + "/none", Most: 1 << 20}, t.Context())
	f("over max_body_bytes", "body_too_large", 413, good, message.ErrTooLarge, room, t.Context())
	f("too slow", "request_timeout", 408, good, message.ErrSlowBody, room, t.Context())
	f("packed, and cut", "invalid_encoding", 400, good, message.ErrPacked, room, t.Context())
	f("broken off", "bad_request", 400, good, left, room, t.Context())
	f("the client left", "client_gone", 499, good, io.EOF, room, gone)
}
