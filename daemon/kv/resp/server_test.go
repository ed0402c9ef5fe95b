package resp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// serve starts a door on port 0 over a store of 64 MiB.
func serve(t testing.TB, c Config) (*Server, *kvstore.Store) {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Store == nil {
		store, err := kvstore.Open(kvstore.Config{MaxBytes: 64 << 20, Log: c.Log})
		if err != nil {
			t.Fatal(err)
		}
		c.Store = store
		t.Cleanup(func() {
			if n := store.Stats(); n.Leases != 0 || n.Fillings != 0 {
				t.Errorf("%d leases and %d fillings are left", n.Leases, n.Fillings)
			}
			if err := store.Close(5 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	c.Listen = "127.0.0.1:0"
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s.Close(ctx)
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return s, c.Store
}

func dial(t testing.TB, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends text and returns all replies, up to a quiet moment after a PING, or to the close.
func ask(t testing.TB, c net.Conn, text string) string {
	t.Helper()
	c.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := io.WriteString(c, text+"*2\r\n$4\r\nPING\r\n$9\r\nPONG-MARK\r\n"); err != nil {
		return "write: " + err.Error()
	}
	var got bytes.Buffer
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		got.Write(b[:n])
		if s, ok := bytes.CutSuffix(got.Bytes(), []byte("$9\r\nPONG-MARK\r\n")); ok {
			return string(s)
		}
		if err != nil {
			return got.String() + "<closed>"
		}
	}
}

// cmd writes a command in the protocol.
func cmd(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func TestCommands(t *testing.T) {
	s, _ := serve(t, Config{})
	c := dial(t, s)
	f := func(want string, words ...string) {
		t.Helper()
		if got := ask(t, c, cmd(words...)); got != want {
			t.Errorf("%.100q answers %.200q; want %.200q", words, got, want)
		}
	}
	f("+PONG\r\n", "PING")
	f("$2\r\nhi\r\n", "ping", "hi")
	f("$2\r\nhi\r\n", "ECHO", "hi")
	f("+OK\r\n", "SET", "k", "v")
	f("$1\r\nv\r\n", "get", "k")
	f("$-1\r\n", "GET", "nothing")
	f("*3\r\n$1\r\nv\r\n$-1\r\n$1\r\nv\r\n", "MGET", "k", "x", "k")
	f(":2\r\n", "EXISTS", "k", "k", "x")
	f(":1\r\n", "STRLEN", "k")
	f(":0\r\n", "STRLEN", "x")
	f(":-1\r\n", "TTL", "k")
	f(":-2\r\n", "PTTL", "x")
	f("+OK\r\n", "SET", "t", "v", "ex", "100")
	f(":100\r\n", "TTL", "t")
	f("+OK\r\n", "SET", "t", "v", "PXAT", fmt.Sprint(time.Now().Add(200*time.Second).UnixMilli()))
	f(":200\r\n", "TTL", "t")
	f("$-1\r\n", "SET", "t", "w", "NX")
	f("$-1\r\n", "SET", "new", "w", "XX", "PX", "5")
	f("$1\r\nv\r\n", "GET", "t")
	f("+OK\r\n", "SET", "gone", "v", "EXAT", "1")
	f("$-1\r\n", "GET", "gone")
	f("-ERR syntax error\r\n", "SET", "k", "w", "EX", "5", "PX", "5")
	f("-ERR syntax error\r\n", "SET", "k", "w", "EX")
	f("-ERR value is not an integer or out of range\r\n", "SET", "k", "w", "EX", "a")
	f("-ERR invalid expire time in 'set' command\r\n", "SET", "k", "w", "EX", "0")
	f("-ERR invalid expire time in 'set' command\r\n", "SET", "k", "w", "EX", "9223372036854775807")
	f("-ERR the KV cache does not know SET's option KEEPTTL\r\n", "SET", "k", "w", "KEEPTTL")
	f("$1\r\nv\r\n", "GET", "k")
	f(":1\r\n", "DEL", "k", "k")
	f(":0\r\n", "EXISTS", "k")
	f("-ERR wrong number of arguments for 'get' command\r\n", "GET")
	f("-ERR wrong number of arguments for 'set' command\r\n", "SET", "k")
	f("-ERR unknown command 'FLUSHALL', with args beginning with: ; the KV cache has `warmpath cache flush` for it\r\n", "FLUSHALL")
	f("-ERR unknown command 'FLY', with args beginning with: 'a' 'b  c' \r\n", "FLY", "a", "b\r\nc")
	f("-ERR the key is empty or longer than 4096 bytes\r\n", "SET", strings.Repeat("k", 5000), "v")
	f("$-1\r\n", "GET", strings.Repeat("k", 5000))
	f(":0\r\n", "EXISTS", strings.Repeat("k", 5000))
	f("+OK\r\n", "SET", "k", "db0")
	f("+OK\r\n", "SELECT", "1")
	f("$-1\r\n", "GET", "k")
	f("-ERR DB index is out of range\r\n", "SELECT", "16")
	f("+OK\r\n", "SELECT", "0")
	f("+OK\r\n", "CLIENT", "SETNAME", "me")
	f("$2\r\nme\r\n", "CLIENT", "GETNAME")
	f("*4\r\n$16\r\nmaxmemory-policy\r\n$3\r\nlru\r\n$4\r\nsave\r\n$0\r\n\r\n", "CONFIG", "GET", "save", "maxmemory-policy")
	f("-ERR Protocol version is not an integer or out of range\r\n", "HELLO", "x")
	f("-NOPROTO unsupported protocol version\r\n", "HELLO", "4")
	f("+OK\r\n", "SET", "k", "")
	f("$0\r\n\r\n", "GET", "k")
	if got := ask(t, c, cmd("HELLO", "3")+cmd("GET", "x")); !strings.HasPrefix(got, "%7\r\n") || !strings.HasSuffix(got, "*0\r\n_\r\n") {
		t.Errorf("HELLO 3 and a miss: %q", got)
	}
	if got := ask(t, c, cmd("INFO", "memory")); !strings.Contains(got, "maxmemory:") || strings.Contains(got, "redis_version") {
		t.Errorf("INFO memory: %q", got)
	}
	if got := ask(t, c, cmd("INFO")); !strings.Contains(got, "redis_version:7.0.15") {
		t.Errorf("INFO: %q", got)
	}
	f("+RESET\r\n", "RESET")
	f("$-1\r\n", "GET", "x")
}

func TestProtocolErrors(t *testing.T) {
	s, store := serve(t, Config{})
	f := func(text, want string) {
		t.Helper()
		if got := ask(t, dial(t, s), text); got != want {
			t.Errorf("%.80q answers %.200q; want %q", text, got, want)
		}
	}
	f("\r\n", "")
	f("*0\r\n*-1\r\n", "")
	f("PING\r\n", "+PONG\r\n")
	f("set k 'a b'\r\nGET k\nget \"\\x6b\"\r\n", "+OK\r\n$3\r\na b\r\n$3\r\na b\r\n")
	f("SET k \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n<closed>")
	f(strings.Repeat("x", 70_000)+"\r\n", "-ERR Protocol error: too big inline request\r\n<closed>")
	f("POST / HTTP/1.1\r\nHost: x\r\n\r\nSET k evil\r\n", "-ERR this is a Redis listener, which does not speak HTTP\r\n<closed>")
	f("ECHO x\r\nHost: x\r\n\r\nSET k evil\r\n", "$1\r\nx\r\n-ERR this is a Redis listener, which does not speak HTTP\r\n<closed>")
	f("GET k\r\n", "$3\r\na b\r\n")
	f("*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n<closed>")
	f("*1048577\r\n", "-ERR Protocol error: invalid multibulk length\r\n<closed>")
	f("*9999999999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length\r\n<closed>")
	f("*1\r\n:3\r\n", "-ERR Protocol error: expected '$', got \":\"\r\n<closed>")
	f("*2\r\n$3\r\nGET\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n<closed>")
	f("*2\r\n$3\r\nGET\r\n$1\r\nkk\r\n", "-ERR Protocol error: invalid bulk length: the argument does not end there\r\n<closed>")
	f("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvvv\r\n", "-ERR Protocol error: invalid bulk length: the argument does not end there\r\n<closed>")
	f("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n", "-ERR Protocol error: invalid bulk length\r\n<closed>")
	f("*2\r\n$3\r\nGET\r\n$9000000\r\n", "-ERR Protocol error: the arguments of a command are longer than 8388608 bytes\r\n<closed>")
	many := "*400000\r\n$6\r\nEXISTS\r\n" + strings.Repeat("$1\r\nn\r\n", 399_999)
	f(many, ":0\r\n")
	most := "*1048576\r\n$6\r\nEXISTS\r\n" + strings.Repeat("$1\r\nk\r\n", 600_000)
	if got := ask(t, dial(t, s), most); !strings.Contains(got, "longer than 8388608") && !strings.HasPrefix(got, "write:") &&
		got != "<closed>" {
		t.Errorf("a million arguments: %.200q", got)
	}
	if n := store.Stats(); n.Fillings != 0 {
		t.Errorf("%d places of broken SETs are held", n.Fillings)
	}
}

// A value that is too long is dropped, and the connection goes on.
func TestTooLong(t *testing.T) {
	store, err := kvstore.Open(kvstore.Config{MaxBytes: 4 << 20, MaxValue: 1 << 20, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close(time.Second)
	s, _ := serve(t, Config{Store: store})
	c := dial(t, s)
	if got, want := ask(t, c, cmd("SET", "k", strings.Repeat("v", 1<<20+1))), "-ERR the value is larger than this cache takes\r\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got := ask(t, c, cmd("SET", "k", strings.Repeat("v", 1<<20))); got != "+OK\r\n" {
		t.Errorf("got %q", got)
	}
	var leases []*kvstore.Lease
	for i := range 3 {
		ask(t, c, cmd("SET", fmt.Sprint(i), strings.Repeat("v", 1<<20)))
		if l := store.Get(t.Context(), fmt.Sprintf("r\x00%d", i), netip.Addr{}); l != nil {
			leases = append(leases, l)
		}
	}
	if got := ask(t, c, cmd("SET", "k", strings.Repeat("v", 1<<20))); !strings.HasPrefix(got, "-OOM ") {
		t.Errorf("a full cache answers %q", got)
	}
	if got := ask(t, c, cmd("GET", "1")); len(got) != 1<<20+12 {
		t.Errorf("%d bytes", len(got))
	}
	for _, l := range leases {
		l.Release()
	}
}

// A value of many megabytes, sent in pieces of odd sizes, comes back.
func TestLargeValues(t *testing.T) {
	s, _ := serve(t, Config{})
	c := dial(t, s)
	value := make([]byte, 20<<20+77)
	for i := range value {
		value[i] = byte(i * 31 >> 3)
	}
	text := cmd("SET", "big", string(value))
	go func() {
		for len(text) > 0 {
			n := min(len(text), 777_777)
			io.WriteString(c, text[:n])
			text = text[n:]
		}
	}()
	ok := make([]byte, 5)
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(c, ok); err != nil || string(ok) != "+OK\r\n" {
		t.Fatalf("%q, %v", ok, err)
	}
	if got := ask(t, c, cmd("GET", "big")+cmd("GET", "big")); got != strings.Repeat(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value), 2) {
		t.Errorf("%d bytes came back", len(got))
	}
}

func TestPipelining(t *testing.T) {
	s, _ := serve(t, Config{})
	var text, want strings.Builder
	for i := range 3000 {
		text.WriteString(cmd("SET", fmt.Sprint("k", i), strings.Repeat("v", i)))
		want.WriteString("+OK\r\n")
	}
	for i := range 3000 {
		text.WriteString(cmd("GET", fmt.Sprint("k", i)))
		fmt.Fprintf(&want, "$%d\r\n%s\r\n", i, strings.Repeat("v", i))
	}
	if got := ask(t, dial(t, s), text.String()); got != want.String() {
		t.Errorf("%d bytes; want %d", len(got), want.Len())
	}
}

func TestAuth(t *testing.T) {
	s, _ := serve(t, Config{User: "lm", Password: "secret"})
	f := func(text, want string) {
		t.Helper()
		if got := ask(t, dial(t, s), text); got != want {
			t.Errorf("%.100q answers %q; want %q", text, got, want)
		}
	}
	const noauth, mark = "-NOAUTH Authentication required.\r\n", "-NOAUTH Authentication required.\r\n"
	wrong := "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
	done := func(auth string) string { return cmd("AUTH", "secret") + auth }
	f(cmd("AUTH", "secret")+cmd("SET", "k", "v")+cmd("GET", "k"), "+OK\r\n+OK\r\n$1\r\nv\r\n")
	f(cmd("AUTH", "lm", "secret"), "+OK\r\n")
	f(cmd("AUTH", "default", "secret"), "+OK\r\n")
	f(cmd("AUTH", "x")+done(""), wrong+"+OK\r\n")
	f(cmd("AUTH", "eve", "secret")+done(""), wrong+"+OK\r\n")
	f(cmd("EXISTS", "k")+done(""), noauth+"+OK\r\n")
	f(cmd("GET", "k")+done(""), "$-1\r\n+OK\r\n")                                                // LMCache's native client: no error
	f(cmd("CLIENT", "SETINFO", "LIB-NAME", "x")+cmd("GET", "k")+done(""), mark+noauth+"+OK\r\n") // a library's
	f(cmd("SET", "k", "v")+done(""), noauth+"+OK\r\n")
	if got := ask(t, dial(t, s), cmd("HELLO", "3", "AUTH", "default", "secret")); !strings.HasPrefix(got, "%7") {
		t.Errorf("HELLO 3 AUTH: %q", got)
	}
	if got := ask(t, dial(t, s), cmd("HELLO", "3")+done("")); !strings.HasPrefix(got, "-NOAUTH HELLO") {
		t.Errorf("HELLO 3: %q", got)
	}
}

// A value that EXISTS found is there for GET, whatever others store in between.
func TestExistsPromises(t *testing.T) {
	s, _ := serve(t, Config{})
	c, other := dial(t, s), dial(t, s)
	value := strings.Repeat("x", 4<<20)
	flood := func() {
		for i := range 20 {
			if got := ask(t, other, cmd("SET", fmt.Sprint("flood", i), value)); got != "+OK\r\n" {
				t.Fatalf("flood: %q", got)
			}
		}
	}
	ask(t, c, cmd("SET", "k", "kept")+cmd("SET", "l", "lost"))
	if got := ask(t, c, cmd("EXISTS", "k")); got != ":1\r\n" {
		t.Fatalf("EXISTS: %q", got)
	}
	flood()
	if got := ask(t, c, cmd("GET", "k")+cmd("GET", "l")); got != "$4\r\nkept\r\n$-1\r\n" {
		t.Errorf("GET: %q", got)
	}
	flood()
	if got := ask(t, c, cmd("GET", "k")); got != "$-1\r\n" {
		t.Errorf("a second GET: %q", got)
	}
}

func TestTooManyClients(t *testing.T) {
	s, _ := serve(t, Config{MaxConns: 2})
	a, b := dial(t, s), dial(t, s)
	ask(t, a, "")
	ask(t, b, "")
	if got, _ := io.ReadAll(dial(t, s)); string(got) != "-ERR max number of clients reached\r\n" {
		t.Errorf("the third gets %q", got)
	}
	a.Close()
	waittest.Until(t, "a place is free", func() bool { return s.Stats().Connections == 1 })
	if got := ask(t, dial(t, s), cmd("PING")); got != "+PONG\r\n" {
		t.Errorf("got %q", got)
	}
}

// Close sends a reply in full, and does not wait for idle clients.
func TestClose(t *testing.T) {
	s, _ := serve(t, Config{})
	idle, busy := dial(t, s), dial(t, s)
	value := strings.Repeat("v", 16<<20)
	ask(t, busy, cmd("SET", "k", value))
	ask(t, idle, "")
	io.WriteString(busy, cmd("GET", "k"))
	b := make([]byte, 11)
	if _, err := io.ReadFull(busy, b); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s.Close(ctx)
		close(closed)
	}()
	if got, err := io.ReadAll(busy); err != nil || string(got) != value+"\r\n" {
		t.Errorf("%d bytes of the reply came, %v", len(got), err)
	}
	if got, err := io.ReadAll(idle); len(got) != 0 || err != nil {
		t.Errorf("the idle one gets %q, %v", got, err)
	}
	<-closed
}

// A client that leaves within a SET leaves nothing behind.
func TestBrokenOff(t *testing.T) {
	s, store := serve(t, Config{})
	for range 20 {
		c := dial(t, s)
		io.WriteString(c, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4000000\r\n"+strings.Repeat("v", 100_000))
		c.Close()
	}
	waittest.Until(t, "all are gone", func() bool { return s.Stats().Connections == 0 })
	if n := store.Stats(); n.Fillings != 0 || n.ReservedBytes != 0 || n.Entries != 0 {
		t.Errorf("left behind: %+v", n)
	}
}
