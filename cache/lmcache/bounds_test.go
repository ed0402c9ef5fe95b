package lmcache

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/warmpath/warmpath/cache/parts/quota"
)

// grown returns by how much the heap in use grows at most while f runs.
func grown(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := int64(m.HeapInuse), int64(0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for {
		select {
		case <-done:
			return most
		case <-time.After(20 * time.Millisecond):
		}
		runtime.ReadMemStats(&m)
		most = max(most, int64(m.HeapInuse)-before)
	}
}

// TestBodiesUnfoldInBounds: what a body unfolds into is judged while it is read.
func TestBodiesUnfoldInBounds(t *testing.T) {
	k, _ := start(t, Config{})
	list := func(before, one, after string, size int) string {
		return before + strings.Repeat(one+",", size/(len(one)+1)) + one + after
	}
	const head = `{"batches":[{"instance_id":"a","incarnation":1,"seq":1,"event_type":"store","tier":"l1","entries":[`
	for _, body := range []struct{ path, text string }{
		{"/events", list(head, `{}`, `]}]}`, 12<<20)},
		{"/events", list(head+`{"token_ids":[`, `1`, `]}]}]}`, 2<<20)},
		{"/events", `{"x":"` + strings.Repeat("x", 8<<20) + `"}`},
		{"/events", list(`{"x":[`, `[]`, `]}`, 2<<20)},
		{"/directory/lookup", list(`{"keys":[`, `{}`, `]}`, 7<<20)},
		{"/directory/lookup", list(`{"world_size":64,"token_ids":[`, `1`, `]}`, 7<<20)},
		{"/directory/lookup", `{"model_name":"` + strings.Repeat("x", 7<<20) + `"}`},
		{"/instances", `{"ip":"` + strings.Repeat("x", 32<<10) + `"}`},
	} {
		status := 0
		most := grown(func() { status, _ = send(t, k, "POST", body.path, body.text) })
		if status != 422 && status != 413 || most > 40<<20 {
			t.Errorf("%s of %d bytes, %.40s: %d, %d bytes of heap more", body.path, len(body.text), body.text, status, most)
		}
	}
}

// TestItemsShareABound: the entries of all requests together are bounded, and a small request is served beside.
func TestItemsShareABound(t *testing.T) {
	held := quota.New(1 << 20)
	hog := newItems(strings.NewReader(`{"keys":[`+strings.Repeat(`{"chunk_hash_hex":"00"},`, 4000)+`{}]}`), held)
	if _, err := hog.lookup(); err != nil {
		t.Fatal("the first:", err)
	}
	second := newItems(strings.NewReader(`{"keys":[`+strings.Repeat(`{},`, 4000)+`{}]}`), held)
	if _, err := second.lookup(); err != quota.ErrFull {
		t.Error("the second:", err)
	}
	second.close()
	small := newItems(strings.NewReader(`{"keys":[{"chunk_hash_hex":"00"}]}`), held)
	if l, err := small.lookup(); err != nil || len(l.keys) != 1 {
		t.Error("a small one beside:", err)
	}
	hog.close()
	small.close()
	if held.Held() != 0 {
		t.Errorf("%d bytes are left", held.Held())
	}
}

// TestWorkersOnly: no web page registers a server.
func TestWorkersOnly(t *testing.T) {
	k, _ := start(t, Config{})
	_, _, _, addr := k.Addrs()
	for _, field := range []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site", "User-Agent: Mozilla/5.0"} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/instances", strings.NewReader(`{"ip":"10.0.0.1"}`))
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 403 {
			t.Errorf("%s: %s", field, answer.Status)
		}
	}
	if n := len(k.Stats().Instances); n != 0 {
		t.Errorf("%d instances", n)
	}
}

// TestMessagesUnfoldInBounds: JSON is short, nesting costs no stack, and what a message unfolds into stays with no
// connection.
func TestMessagesUnfoldInBounds(t *testing.T) {
	var m message
	if err := m.decode(fmt.Appendf(nil, `{"operations":[%s{}]}`, strings.Repeat("{},", maxJSON/3))); err != errJSON {
		t.Errorf("long JSON: %v", err)
	}
	deep := msgp.AppendString(msgp.AppendMapHeader(nil, 1), "new")
	deep = append(deep, bytes.Repeat([]byte{0x91}, 4<<20)...)
	if most := grown(func() { _ = m.decode(append(deep, 0xc0)) }); most > 12<<20 {
		t.Errorf("four million levels take %d bytes", most)
	}
	for _, n := range []int{0, 1, 3} {
		rest, err := skip(append(msgp.AppendMapHeader(nil, 1), bytes.Repeat([]byte{0x91}, n)...))
		if err == nil {
			t.Errorf("a map cut short after %d levels: %d bytes are left", n, len(rest))
		}
	}
	nested, _ := msgp.AppendIntf(nil, map[string]any{"a": []any{1, "x", map[string]any{"b": nil}}, "c": 1.5})
	if rest, err := skip(append(nested, 7)); err != nil || len(rest) != 1 {
		t.Errorf("after a nested value: %v, %v", rest, err)
	}
	k := &Controller{fleet: newFleet(Limits{}, quiet)}
	frame := msgp.AppendArrayHeader(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "operations"), 1<<17)
	frame = append(frame, bytes.Repeat([]byte{0x80}, 1<<17)...)
	for range 3 {
		conn := &message{from: "10.0.0.1"}
		_ = k.note(conn, frame)
		if conn.ops != nil || conn.keys != nil {
			t.Fatal("a connection keeps what its message unfolded into")
		}
	}
}

// TestGoneInstancesMakeRoom: workers that are gone keep nobody out, and in time are forgotten.
func TestGoneInstancesMakeRoom(t *testing.T) {
	s := newScene(t, Limits{Instances: 3})
	for n := range 3 {
		s.register(fmt.Sprint("gone", n), "10.0.0.1", 1)
		s.later(time.Second)
	}
	s.later(time.Minute) // their connections are closed
	s.register("alive", "10.0.0.2", 1)
	s.f.plug(2, "10.0.0.2")
	if s.f.instances["gone0"] != nil || len(s.f.instances) != 3 {
		t.Errorf("%d instances, and the longest gone is among them: %v", len(s.f.instances), s.f.instances["gone0"] != nil)
	}
	s.later(forgetAfter + time.Minute)
	if len(s.f.instances) != 1 || s.f.instances["alive"] == nil {
		t.Errorf("after %v there are %d instances", forgetAfter, len(s.f.instances))
	}
	bad := s.at(operations, "bad", "10.0.0.1", 1)
	bad.worker = maxRanks
	if err := s.f.report(bad, s.now); err == nil || s.f.instances["bad"] != nil {
		t.Errorf("a worker whose first message is refused: %v, kept %v", err, s.f.instances["bad"] != nil)
	}
}

// TestSeatsAreBounded: ranks and locations are bounded over all instances.
func TestSeatsAreBounded(t *testing.T) {
	d := newDirectory(10)
	f := newFleet(Limits{}, quiet)
	f.dir = d
	seats := make([]*seat, maxSeats)
	d.seats.Store(&seats)
	i := &instance{id: "a", ranks: map[int]*rank{}}
	if _, err := f.streamOf(i, &rank{streams: map[string]*stream{}}, "L", local); err == nil {
		t.Error("one more seat is taken")
	}
}

// TestBatchInPieces: entries and the fields behind them make one batch; a batch that breaks off changes nothing.
func TestBatchInPieces(t *testing.T) {
	k, _ := start(t, Config{ChunkSize: 16})
	key := objectKey{Hash: sums(upTo(16), 16)[0], Model: "m", Rank: 1<<24 | 1<<8}
	text, _ := json.Marshal(entry{Key: key, Offset: -1})
	const fields = `"instance_id":"a","incarnation":1,"seq":1,"event_type":"store","tier":"l1","backend":"b"`
	broken := fmt.Sprintf(`{"batches":[{%s,"entries":[%s,`, fields, text)
	if status, _ := send(t, k, "POST", "/events", broken); status != 422 || k.Stats().Keys != 0 {
		t.Errorf("a broken batch: %d, %d keys", status, k.Stats().Keys)
	}
	late := fmt.Sprintf(`{"batches":[{"entries":[%s],%s,"shared":true}]}`, text, fields)
	if status, body := send(t, k, "POST", "/events", late); status != 200 || k.Stats().Keys != 1 {
		t.Errorf("fields behind the entries: %d %s, %d keys", status, body, k.Stats().Keys)
	}
}
