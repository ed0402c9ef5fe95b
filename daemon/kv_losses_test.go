package daemon

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// shelves is a daemon with a KV cache and LMCache's coordinator, and a client of its Redis listener that puts what a
// multi-process server would.
type shelves struct {
	t    *testing.T
	d    *running
	door *redis.Client
	seq  int
}

func newShelves(t *testing.T, more string) *shelves {
	t.Helper()
	d := start(t, "[lmcache]\ncoordinator = \"127.0.0.1:0\"\n"+settings("roundrobin", "http://127.0.0.1:1")+
		"[kv_cache]\nresp = \"127.0.0.1:0\"\nmax_bytes = 33554432\n"+more, 0)
	c := redis.NewClient(&redis.Options{Addr: d.kvCache.RESPAddr(), Protocol: 2, MaxRetries: -1, DialTimeout: 2 * time.Minute,
		ReadTimeout: 2 * time.Minute, WriteTimeout: 2 * time.Minute})
	t.Cleanup(func() { c.Close() })
	return &shelves{t: t, d: d, door: c}
}

const valueBytes = 1 << 20

// chunkHash is of the n-th chunk.
func chunkHash(n int) string { return strings.Repeat(fmt.Sprintf("%016x", n+1), 4) }

// chunkKey is how a server of LMCache 0.5.6 names it at the Redis listener, and in the store.
func chunkKey(n int) string { return "org/tiny@01000100@0@" + chunkHash(n) }

func (s *shelves) put(n int) {
	s.t.Helper()
	s.set(chunkKey(n), 0)
}

func (s *shelves) set(key string, life time.Duration) {
	s.t.Helper()
	if err := s.door.Set(s.t.Context(), key, strings.Repeat("v", valueBytes), life).Err(); err != nil {
		s.t.Fatalf("SET %s: %v", key, err)
	}
}

func (s *shelves) delete(n int) {
	s.t.Helper()
	if gone, err := s.door.Del(s.t.Context(), chunkKey(n)).Result(); gone != 1 || err != nil {
		s.t.Fatalf("DEL of chunk %d: %d are gone, %v", n, gone, err)
	}
}

func (s *shelves) post(path, body string) string {
	s.t.Helper()
	_, _, _, at := s.d.lmcache.Addrs()
	r, err := http.Post("http://"+at+path, "application/json", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusOK {
		s.t.Fatalf("%s is answered %d %s", path, r.StatusCode, text)
	}
	return string(text)
}

// tell is a server's event that it has put the chunk.
func (s *shelves) tell(n int, backend string, shared bool) {
	s.t.Helper()
	s.seq++
	s.post("/events", fmt.Sprintf(`{"batches":[{"instance_id":"node","incarnation":1,"seq":%d,"event_type":"store","tier":"l2",`+
		`"backend":%q,"shared":%v,"entries":[{"key":%s,"token_offset":-1}]}]}`, s.seq, backend, shared, objectKeyOf(n)))
}

func objectKeyOf(n int) string {
	return fmt.Sprintf(`{"chunk_hash_hex":%q,"model_name":"org/tiny","kv_rank":%d}`, chunkHash(n), 0x01000100)
}

// believed is where the chunk is taken to be.
func (s *shelves) believed(n int) string {
	s.t.Helper()
	answer := s.post("/directory/lookup", `{"keys":[`+objectKeyOf(n)+`]}`)
	var where []string
	for _, backend := range []string{"resp", "valkey", "sagemaker-hyperpod", "fs"} {
		if strings.Contains(answer, fmt.Sprintf(`"backend":%q`, backend)) {
			where = append(where, backend)
		}
	}
	return strings.Join(where, " ")
}

func (s *shelves) expect(n int, want string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("chunk %d is taken to be at %q", n, want), func() bool { return s.believed(n) == want })
}

// tiers is which tiers of the KV cache have the chunk.
func (s *shelves) tiers(n int) string {
	page := s.d.kvCache.Page("r\x00"+chunkKey(n), "", 1)
	if len(page) == 0 {
		return ""
	}
	return strings.Join(page[0].Tiers, " ")
}

// What the KV cache evicts or deletes is believed no more to be in it: not of one server nor of all, but still in other
// stores.
func TestLostChunksAreForgotten(t *testing.T) {
	t.Parallel()
	s := newShelves(t, "")
	s.put(0)
	s.put(1)
	for _, backend := range []string{"resp", "sagemaker-hyperpod", "fs"} {
		s.tell(0, backend, false)
	}
	s.tell(1, "resp", true)
	for n, want := range []string{"resp sagemaker-hyperpod fs", "resp"} {
		if got := s.believed(n); got != want {
			t.Fatalf("chunk %d is taken to be at %q before it is lost; want %q", n, got, want)
		}
	}
	for n := 2; s.tiers(0)+s.tiers(1) != ""; n++ {
		s.put(n)
		if n == 100 {
			t.Fatal("100 values of 1 MiB evict nothing from 32 MiB")
		}
	}
	s.expect(0, "sagemaker-hyperpod fs")
	s.expect(1, "")
	s.put(0)
	s.tell(0, "resp", true)
	s.expect(0, "resp sagemaker-hyperpod fs")
	s.delete(0)
	s.expect(0, "sagemaker-hyperpod fs")
	if n := s.d.lmcache.Stats().Counts.StoreLost; n != 3 {
		t.Errorf("%d lost parts are counted; want 3", n)
	}
}

// What is spilled is in the KV cache, and is believed to be.
func TestSpilledChunksAreNotForgotten(t *testing.T) {
	t.Parallel()
	s := newShelves(t, fmt.Sprintf("spill_dir = %q\nspill_bytes = 134217728\n", t.TempDir()))
	for n := range 2 {
		s.put(n)
		s.tell(n, "resp", true)
		eventually(t, "the value is spilled", func() bool { return s.tiers(n) == "l1 disk" })
	}
	for n := 2; s.tiers(0) != "disk" || s.tiers(1) != "disk"; n++ {
		s.put(n)
		if n == 100 {
			t.Fatalf("after 100 values the first two are in %q and %q", s.tiers(0), s.tiers(1))
		}
	}
	s.delete(0) // after which the evictions have been told, too
	s.expect(0, "")
	if got := s.believed(1); got != "resp" {
		t.Errorf("a spilled chunk is taken to be at %q", got)
	}
}

// What only a Redis has is believed to be there until that has lost it, though nobody asks for it.
func TestChunksLostInRedisAreForgotten(t *testing.T) {
	t.Parallel()
	port := fmt.Sprint(porttest.Row(t, 1)) // L2 knows no sockets
	r := redistest.Start(t, "--bind", "127.0.0.1", "--port", port)
	s := newShelves(t, "[kv_cache.l2]\nenabled = true\nbackend = \"redis\"\ntimeout = \"10s\"\nurl = \"redis://127.0.0.1:"+port+"\"\n")
	for n := range 2 {
		s.put(n)
		s.tell(n, "resp", true)
		eventually(t, "the value is in L2", func() bool { return s.tiers(n) == "l1 l2" })
	}
	for n := 2; s.tiers(0) != "l2" || s.tiers(1) != "l2"; n++ {
		s.put(n)
		if n == 100 {
			t.Fatalf("after 100 values the first two are in %q and %q", s.tiers(0), s.tiers(1))
		}
	}
	opt, err := redis.ParseURL(r.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opt)
	defer c.Close()
	keys := c.Keys(t.Context(), "*"+chunkKey(0)).Val()
	if n := c.Del(t.Context(), keys...).Val(); n != 1 {
		t.Fatalf("%d of %q were deleted in Redis; want 1", n, keys)
	}
	s.expect(0, "")
	if got := s.believed(1); got != "resp" {
		t.Errorf("what Redis has is taken to be at %q", got)
	}
}

// What ends on the disk is forgotten then.
func TestEndedChunksAreForgotten(t *testing.T) {
	t.Parallel()
	s := newShelves(t, fmt.Sprintf("spill_dir = %q\nspill_bytes = 134217728\n", t.TempDir()))
	for n := range 2 {
		s.tell(n, "resp", true) // before the put: the chunk may end at any time after that
		s.expect(n, "resp")
	}
	s.put(1)
	s.set(chunkKey(0), 2*time.Second)
	s.expect(0, "")
	if got := s.believed(1); got != "resp" {
		t.Errorf("a chunk without an end is taken to be at %q", got)
	}
}

// A key with the prefix that LMCache's valkey adapter can be given is known for the chunk that it is of.
func TestPrefixedChunksAreForgotten(t *testing.T) {
	s := newShelves(t, "")
	s.set("team@"+chunkKey(0), 0)
	s.tell(0, "valkey", true)
	s.expect(0, "valkey")
	if err := s.door.Del(t.Context(), "team@"+chunkKey(0)).Err(); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "")
}
