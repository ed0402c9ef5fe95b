package decisions

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// asked is a request of that id that no strategy was asked for.
func asked(id string) *message.Inbound {
	in := &message.Inbound{ID: id, Remote: "10.0.0.1", Method: "POST", Path: "/v1/completions", Caller: &gate.Caller{Name: "team"}}
	in.Seen.Pool, in.Seen.Model, in.Seen.Worker, in.Seen.Status = "p", "m", "w1", 200
	return in
}

// ids lists the requests in their order.
func ids(list []Decision) string {
	var all []string
	for i := range list {
		all = append(all, list[i].ID)
	}
	return strings.Join(all, " ")
}

func TestRingKeepsTheLast(t *testing.T) {
	var none Ring
	none.Ended(asked("a"), time.Second, 0)
	if got := none.Stats(); got.Kept != 0 {
		t.Errorf("a ring without room keeps %+v", got)
	}
	r := new(Ring)
	r.Resize(10_000)
	for i := range 1000 {
		r.Ended(asked(fmt.Sprint("r", i)), time.Second, 10)
		if s := r.Stats(); s.Bytes > 10_000 {
			t.Fatalf("%d bytes after %d requests", s.Bytes, i+1)
		}
	}
	s := r.Stats()
	if s.Kept < 5 || s.Oldest.IsZero() {
		t.Fatalf("%+v", s)
	}
	if got := ids(r.Latest(Query{Limit: 3})); got != "r999 r998 r997" {
		t.Errorf("the latest are %s", got)
	}
	if d, ok := r.Find("r999"); !ok || d.Number != 1000 || d.Seconds != 1 || d.Bytes != 10 || d.Key != "team" || d.Open {
		t.Errorf("%+v, %v", d, ok)
	}
	if _, ok := r.Find("r1"); ok {
		t.Error("the second request is still there")
	}
	if got := len(r.Latest(Query{Limit: 1000})); got != s.Kept {
		t.Errorf("%d are listed, %d are kept", got, s.Kept)
	}
	r.Resize(0)
	if s := r.Stats(); s.Kept != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
}

// Find returns the last of two requests with one id, which a client chose.
func TestTheSameIDTwice(t *testing.T) {
	r := new(Ring)
	r.Resize(1 << 20)
	for i := range 2 {
		in := asked("same")
		in.Seen.Retries = int32(i)
		r.Ended(in, time.Second, 0)
	}
	if d, _ := r.Find("same"); d.Retries != 1 {
		t.Errorf("%+v", d)
	}
}

func TestQueries(t *testing.T) {
	r := new(Ring)
	r.Resize(1 << 20)
	end := func(id, worker, endsWith string, status int, took time.Duration) {
		in := asked(id)
		in.Seen.Worker, in.Seen.Status, in.Seen.End = worker, int32(status), endsWith
		r.Ended(in, took, 0)
	}
	end("a", "w1", "", 200, time.Second)
	end("b", "w2", "", 503, time.Second)
	end("c", "w1", "client_gone", 200, 3*time.Second)
	f := func(q Query, want string) {
		t.Helper()
		q.Limit = 10
		if got := ids(r.Latest(q)); got != want {
			t.Errorf("%+v: %s; want %s", q, got, want)
		}
	}
	f(Query{}, "c b a")
	f(Query{Worker: "w1"}, "c a")
	f(Query{Failed: true}, "c b")
	f(Query{Slower: 2 * time.Second}, "c")
	f(Query{Pool: "q"}, "")
	f(Query{Key: "team", Model: "m", Pool: "p"}, "c b a")
	f(Query{Key: "other"}, "")
}

// A viewer gets what is new and what has ended since it looked, and how many there was no room for.
func TestSince(t *testing.T) {
	r := new(Ring)
	r.Resize(1 << 20)
	for i := range 5 {
		r.Ended(asked(fmt.Sprint("r", i)), time.Second, 0)
	}
	list, at, left := r.Since(0, Query{Limit: 2})
	if ids(list) != "r4 r3" || left != 3 {
		t.Errorf("%s, %d left", ids(list), left)
	}
	if list, again, left := r.Since(at, Query{Limit: 2}); list != nil || again != at || left != 0 {
		t.Errorf("nothing has changed, and there are %s, %d left", ids(list), left)
	}
	r.Ended(asked("new"), time.Second, 0)
	if list, _, _ := r.Since(at, Query{Limit: 2}); ids(list) != "new" {
		t.Errorf("%s", ids(list))
	}
}

// A client's words are kept as copies of bounded length: a slice of its header would keep a secret alive.
func TestWordsAreCopiesAndBounded(t *testing.T) {
	r := new(Ring)
	r.Resize(1 << 20)
	in := asked("id")
	in.Path = "/v1/" + strings.Repeat("x", 9000)
	in.Seen.Model = strings.Repeat("m", 9000)
	in.Seen.Candidates = []record.Candidate{{Worker: "w"}}
	in.Seen.Frame = []byte("frame")
	r.Ended(in, time.Second, 0)
	d, _ := r.Find("id")
	if len(d.Path) > gate.MaxText || len(d.Model) > gate.MaxText || d.Candidates != nil || d.Frame != nil {
		t.Errorf("%d bytes of path, %d of model", len(d.Path), len(d.Model))
	}
	text, err := d.JSON()
	if err != nil || !json.Valid(text) {
		t.Errorf("%v", err)
	}
}

// Requests come and go while viewers look.
func TestRingUnderLoad(t *testing.T) {
	r := new(Ring)
	r.Resize(50_000)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for k := range 500 {
				in := asked(fmt.Sprint(i, "-", k))
				r.Ended(in, time.Second, 0)
			}
		})
		all.Go(func() {
			at := uint64(0)
			for range 200 {
				list, last, _ := r.Since(at, Query{Limit: 10})
				if last < at || len(list) > 10 {
					t.Errorf("%d after %d, %d decisions", last, at, len(list))
				}
				at = last
				r.Find("2-3")
				r.Resize(40_000 + i)
			}
		})
	}
	all.Wait()
	if s := r.Stats(); s.Bytes > 50_000 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkRing is what a request pays beside the sketch of its choice (route.BenchmarkSketch).
func BenchmarkRing(b *testing.B) {
	r := new(Ring)
	r.Resize(1 << 20)
	in := asked("0123456789abcdef0123456789abcdef")
	for range 5000 {
		r.Ended(in, time.Second, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		in.Seen.Kept = nil
		r.Ended(in, time.Second, 0)
	}
}

// An open request has its age and the worker where it is now; ?open=1 selects it, and a viewer learns of the move.
func TestOpenRequests(t *testing.T) {
	r := new(Ring)
	r.Resize(1 << 20)
	r.Ended(asked("ended"), time.Second, 0)
	in := asked("open")
	in.Seen.At = time.Now().Add(-3 * time.Second)
	r.Decided(in, nil)
	_, change, _ := r.Since(0, Query{Limit: 9})
	in.Seen.Retries, in.Seen.Attempts = 1, []record.Attempt{{Worker: "w1", Reason: "late"}}
	r.Moves(in, "w2")
	list := r.Latest(Query{Open: true, Limit: 9})
	if len(list) != 1 || list[0].ID != "open" || list[0].Worker != "w2" || list[0].Retries != 1 || len(list[0].Attempts) != 1 ||
		list[0].Seconds < 3 || list[0].Seconds > 60 {
		t.Errorf("%+v", list)
	}
	moved, change, _ := r.Since(change, Query{Limit: 9})
	if ids(moved) != "open" {
		t.Errorf("a viewer learns of %s", ids(moved))
	}
	r.Moves(in, "w2")
	if again, _, _ := r.Since(change, Query{Limit: 9}); len(again) != 0 {
		t.Errorf("it has moved nowhere, and a viewer learns of %s", ids(again))
	}
	before := r.Stats().Bytes
	r.Ended(in, 4*time.Second, 0)
	if d, _ := r.Find("open"); d.Open || d.Seconds != 4 || r.Stats().Bytes > before+1000 {
		t.Errorf("%+v, %d bytes after %d", d, r.Stats().Bytes, before)
	}
}
