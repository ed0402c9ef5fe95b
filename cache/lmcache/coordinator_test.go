package lmcache

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/blake3"
)

// send makes a request of the coordinator and returns status and body.
func send(t *testing.T, k *Controller, method, path, body string) (int, string) {
	t.Helper()
	_, _, _, addr := k.Addrs()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, strings.TrimSpace(string(text))
}

// exchange is a request and its answer's body, as they were recorded.
type exchange struct {
	at                         float64
	method, path, body, answer string
}

// recordedExchanges reads coordinator.jsonl: the lines of a connection and a direction joined, then split by Content-Length.
func recordedExchanges(t *testing.T) (all []exchange) {
	type line struct {
		T    float64
		Conn int
		From string
		Hex  string
	}
	type mark struct { // the bytes from here on came at t
		from int
		t    float64
	}
	streams := map[string][]byte{}
	times := map[string][]mark{}
	last := 0
	lines(t, "testdata/0.5.6/coordinator.jsonl", func(l line) {
		b, _ := hex.DecodeString(l.Hex)
		name := fmt.Sprint(l.Conn, l.From)
		times[name] = append(times[name], mark{len(streams[name]), l.T})
		streams[name] = append(streams[name], b...)
		last = max(last, l.Conn)
	})
	for conn := range last + 1 {
		requests, answers := streams[fmt.Sprint(conn, "client")], streams[fmt.Sprint(conn, "server")]
		whole := len(requests)
		for len(requests) > 0 {
			var e exchange
			for _, m := range times[fmt.Sprint(conn, "client")] {
				if m.from <= whole-len(requests) {
					e.at = m.t
				}
			}
			var head string
			head, e.body, requests = cutHTTP(t, requests)
			_, e.answer, answers = cutHTTP(t, answers)
			_, _ = fmt.Sscan(head, &e.method, &e.path)
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b exchange) int { return cmp.Compare(a.at, b.at) })
	return all
}

func cutHTTP(t *testing.T, b []byte) (head, body string, rest []byte) {
	t.Helper()
	h, rest, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		t.Fatalf("no end of a header in %.80q", b)
	}
	n := 0
	for _, l := range strings.Split(string(h), "\r\n") {
		if name, v, _ := strings.Cut(l, ":"); strings.EqualFold(name, "content-length") {
			_, _ = fmt.Sscan(v, &n)
		}
	}
	return string(h), string(rest[:n]), rest[n:]
}

// The recorded server, request by request: every answer is the recorded coordinator's, and at the end are in memory the
// two chunks that were stored last, in the stores behind it all six.
func TestRecordedServer(t *testing.T) {
	k, out := start(t, Config{ChunkSize: 128})
	n := 0
	for _, e := range recordedExchanges(t) {
		if _, got := send(t, k, e.method, e.path, e.body); got != e.answer {
			t.Errorf("%s %s is answered %s; recorded is %s", e.method, e.path, got, e.answer)
		}
		n++
	}
	if n < 15 {
		t.Fatalf("only %d requests are recorded", n)
	}
	s := one(t, k)
	want := map[string]int64{"l1/dram": 2, "l2/resp": 6, "l2/sagemaker-hyperpod": 6}
	if fmt.Sprint(s.Keys) != fmt.Sprint(want) || s.Kind != "server" {
		t.Errorf("the server holds %v; want %v", s.Keys, want)
	}
	if !strings.Contains(out.String(), `msg="Worker registered: mp-a"`) {
		t.Errorf("the log is %s", out)
	}
}

// mp is a server that stores chunks of 16 tokens.
type mp struct {
	t           *testing.T
	k           *Controller
	id          string
	incarnation int
	seq         int
}

// sentBatch is a batch with its entries, as a server sends it.
type sentBatch struct {
	batch
	Entries []entry `json:"entries"`
}

// event sends one batch and returns what the coordinator made of it.
func (m *mp) event(kind, tier string, shared bool, keys ...objectKey) string {
	m.t.Helper()
	m.seq++
	b := sentBatch{batch: batch{Instance: m.id, Incarnation: int64(m.incarnation), Seq: int64(m.seq), Type: kind, Tier: tier,
		Backend: "b", Shared: shared}}
	for _, key := range keys {
		b.Entries = append(b.Entries, entry{Key: key, Offset: -1})
	}
	body, _ := json.Marshal(map[string]any{"batches": []sentBatch{b}})
	_, answer := send(m.t, m.k, "POST", "/events", string(body))
	return answer
}

// sums computes blake3 chunk hashes as token_hasher.py does.
func sums(ids []uint32, size int) (all []string) {
	sum := blake3.Sum256(make([]byte, 12)) // of (0, (0,))
	for ; len(ids) >= size; ids = ids[size:] {
		b := sum[:]
		for _, id := range ids[:size] {
			b = append(b, byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
		}
		sum = blake3.Sum256(b)
		all = append(all, hex.EncodeToString(sum[:]))
	}
	return all
}

func TestServer(t *testing.T) {
	k, _ := start(t, Config{ChunkSize: 16})
	ids := upTo(81)
	hashes := sums(ids, 16)
	key := func(n, rank int, salt string) objectKey {
		return objectKey{Hash: hashes[n], Model: "m", Rank: 2<<24 | uint32(rank)<<16 | 2<<8 | uint32(rank), Salt: salt}
	}
	both := func(n int) []objectKey { return []objectKey{key(n, 0, ""), key(n, 1, "")} }
	if status, body := send(t, k, "POST", "/instances", `{"instance_id":"node","ip":"10.0.0.6","http_port":1}`); status != 200 ||
		body != `{"instance_id":"node","re_registered":false}` {
		t.Fatal(status, body)
	}
	m := &mp{t: t, k: k, id: "node", incarnation: 7}
	other := &mp{t: t, k: k, id: "other", incarnation: 1}
	r := k.NewRoster()
	r.Set([]Worker{{1, "w1", "10.0.0.6"}, {2, "w2", "10.0.0.6"}, {3, "w3", "elsewhere"}})
	var q Query
	out := make([]Held, 3)
	expect := func(what, salt string, want Held) {
		t.Helper()
		var got Held
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			q.Reset(salt, ids)
			r.Match(&q, []uint32{1, 2, 3}, out)
			if got = out[0]; got == want && out[1] == want && out[2] == (Held{}) {
				return
			}
		}
		t.Errorf("%s: %+v; want %+v", what, got, want)
	}
	m.event("store", "l1", false, append(both(0), both(1)...)...)
	m.event("store", "l1", false, key(2, 0, ""))
	expect("rank 1 lacks the third", "", Held{32, 32, true})
	m.event("store", "l2", false, both(2)...)
	expect("the third is behind it", "", Held{32, 48, true})
	other.event("store", "l2", true, both(3)...)
	expect("the fourth is in a store that all share", "", Held{32, 64, true})
	expect("another salt", "tenant", Held{0, 0, true})
	m.event("store", "l1", false, key(0, 0, "tenant"), key(0, 1, "tenant"))
	expect("the salt's own", "tenant", Held{16, 16, true})
	m.event("delete", "l1", false, key(1, 0, ""))
	expect("a part of the second is gone", "", Held{16, 16, true})
	if got := m.event("store", "l3-to-come", false); got != `{"applied":1,"duplicates":0,"stale":0}` {
		t.Error(got)
	}
	m.seq--
	if got := m.event("store", "l1", false, both(1)...); got != `{"applied":0,"duplicates":1,"stale":0}` {
		t.Error(got)
	}
	m.incarnation--
	if got := m.event("store", "l1", false, both(1)...); got != `{"applied":0,"duplicates":0,"stale":1}` {
		t.Error(got)
	}
	m.incarnation, m.seq = 8, 0
	m.event("store", "l1", false, both(0)...)
	expect("begun anew", "", Held{16, 16, true})
	m.event("store", "l1", false, both(1)...)
	expect("what is behind it stays", "", Held{32, 64, true})
	m.seq += 3
	m.event("store", "l1", false, both(0)...)
	expect("a gap", "", Held{16, 16, true})
	lookUpAndLeave(t, k, ids)
	expect("gone", "", Held{})
	if status, _ := send(t, k, "PUT", "/instances/node/heartbeat", ""); status != 404 {
		t.Error("an unknown server's heartbeat is answered", status)
	}
}

// lookUpAndLeave asks where the first chunk is, and deregisters the server.
func lookUpAndLeave(t *testing.T, k *Controller, ids []uint32) {
	t.Helper()
	if _, body := send(t, k, "POST", "/directory/lookup", `{"model_name":"m","world_size":2,"token_ids":[`+
		strings.Trim(strings.ReplaceAll(fmt.Sprint(ids[:16]), " ", ","), "[]")+`]}`); !strings.Contains(body, `"chunks":1`) ||
		strings.Count(body, `"instance_id":"node"`) != 2 {
		t.Errorf("the lookup is answered %s", body)
	}
	if status, _ := send(t, k, "DELETE", "/instances/node", ""); status != 204 {
		t.Error(status)
	}
}

// A store entry with tokens shows how the server hashes before any prompt comes.
func TestServerTellsTokens(t *testing.T) {
	k, _ := start(t, Config{})
	ids := upTo(64)
	body, _ := json.Marshal(map[string]any{"batches": []sentBatch{{batch: batch{Instance: "s", Seq: 1, Type: "store",
		Tier: "l1", Backend: "b"}, Entries: []entry{{Key: objectKey{Hash: sums(ids, 64)[0], Model: "m", Rank: 1<<24 | 1<<8}, Tokens: ids}}}}})
	for _, path := range []string{"/l2/events", "/directory/events"} {
		if status, answer := send(t, k, "POST", path, string(body)); status != 200 {
			t.Fatal(path, answer)
		}
	}
	if got := one(t, k).Hash; got != "blake3, tail None, root own, chunk 64" {
		t.Errorf("the hash is %q", got)
	}
}

func TestBadEvents(t *testing.T) {
	k, out := start(t, Config{})
	deep := strings.Repeat("[", 20_000)
	for _, body := range []string{"", "[]", "{", `{"batches":1}`, `{"batches":[1]}`, `{"batches":[{"instance_id":"a"}]}`,
		`{"x":` + deep, `{"batches":[{"instance_id":"` + strings.Repeat("x", 300) + `","seq":1}]}`,
		`{"batches":[{"instance_id":"a","seq":1,"event_type":"store","tier":"l1","entries":[{"key":{"chunk_hash_hex":"zz"}}]}]}`,
		`{"batches":[{"instance_id":"a","seq":2,"event_type":"store","tier":"l1","backend":"b","entries":[{"key":` +
			`{"chunk_hash_hex":"00112233445566778899","kv_rank":4278190080}}]}]}`} {
		if status, answer := send(t, k, "POST", "/events", body); status != 422 || !strings.Contains(answer, "detail") {
			t.Errorf("%.80s is answered %d %s", body, status, answer)
		}
	}
	for _, body := range []string{"", "{}", `{"ip":""}`, `{"ip":"x","instance_id":"` + strings.Repeat("x", 300) + `"}`} {
		if status, _ := send(t, k, "POST", "/instances", body); status != 422 {
			t.Errorf("%.80s is answered %d", body, status)
		}
	}
	if n := strings.Count(out.String(), "is dropped"); n != 1 {
		t.Errorf("%d warnings for one peer", n)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"batches":[{"instance_id":"a","incarnation":1,"seq":1,"event_type":"store","tier":"l1","backend":"dram",` +
		`"entries":[{"key":{"chunk_hash_hex":"de348128be77bfd0","model_name":"m","kv_rank":16777472,"cache_salt":""}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		fleet := newFleet(Limits{Instances: 8, AllKeys: 100}, quiet)
		x := newItems(bytes.NewReader(body), nil)
		_ = x.batches(func(b *batch) error {
			_, err := fleet.take(b, time.Unix(1, 0))
			return err
		})
		_, _ = newItems(bytes.NewReader(body), nil).lookup()
	})
}

// deepest is a listener of many connections that records how deep its callers are.
type deepest struct {
	net.Listener
	left, depth int
}

func (l *deepest) Accept() (net.Conn, error) {
	l.depth = runtime.Callers(0, make([]uintptr, 1000))
	l.left--
	if l.left < 0 {
		return nil, net.ErrClosed
	}
	c, _ := net.Pipe()
	return c, nil
}

// TestCrowd: connections beyond the bound are closed, and however many come, the stack does not grow.
func TestCrowd(t *testing.T) {
	from := &deepest{left: 500}
	l := &crowdedListener{Listener: from, places: make(chan struct{}, 1)}
	if _, err := l.Accept(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) || from.depth > 100 {
		t.Errorf("%v, with %d callers after 500 connections", err, from.depth)
	}
}
