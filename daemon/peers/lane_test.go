package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// answered reads a reply once all of it has come, and not before. Bytes that no Redis sends are an error.
func TestAnswered(t *testing.T) {
	asked := []batch{{stream: "a", frames: [][]byte{{1}, {2}}}, {stream: "b", frames: [][]byte{{3}}}}
	reply := "$3\r\n1-1\r\n$3\r\n1-2\r\n$4\r\n1-33\r\n*2\r\n*2\r\n$1\r\na\r\n*2\r\n" +
		"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$4\r\nab\r\n\r\n*2\r\n$3\r\n1-2\r\n*4\r\n$1\r\nx\r\n$1\r\ny\r\n$1\r\nf\r\n$0\r\n\r\n" +
		"*2\r\n$1\r\nb\r\n*1\r\n*2\r\n$3\r\n9-9\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n"
	x, whole, err := parseReply([]byte(reply), asked)
	if err != nil || !whole {
		t.Fatalf("whole %v, %v", whole, err)
	}
	if got := fmt.Sprintf("%v %v %q", x.taken, x.last, x.got); got != `[2 1] [1-2 1-33] map["a":[{"1-1" "ab\r\n"} `+
		`{"1-2" ""}] "b":[{"9-9" ""}]]` {
		t.Error(got)
	}
	for n := range reply {
		if _, whole, err := parseReply([]byte(reply[:n]), asked); whole || err != nil {
			t.Errorf("of the first %d bytes: whole %v, %v; want more to come", n, whole, err)
		}
	}
	if x, whole, err := parseReply([]byte("*-1\r\n"), nil); !whole || err != nil || len(x.got) > 0 {
		t.Errorf("nothing new: %v %v %v", x, whole, err)
	}
	for _, bad := range []string{"-OOM\r\n", "$3\r\n1-1\r\n-OOM\r\n", "+OK\r\n", "$x\r\n", "$-1\r\n", "$999999999999999\r\n", "$3\n",
		"$1\r\nab\r\n", reply + "x", "HTTP/1.1 400 Bad Request\r\n"} {
		if _, whole, err := parseReply([]byte(bad), asked); whole || !errors.Is(err, errUnasked) {
			t.Errorf("%q: whole %v, %v", bad, whole, err)
		}
	}
	r := rand.New(rand.NewPCG(1, 7))
	for range 20_000 { // any input ends the read
		b := []byte(reply)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		_, _, _ = parseReply(b[:r.IntN(len(b)+1)], asked)
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// While requests come, they begin the rounds in passing. A connection that breaks, or a Redis that is slow, costs the
// other router no record, and a while later requests begin rounds in passing again.
func TestRoundsInPassing(t *testing.T) {
	redis := redistest.Start(t)
	ctx, stop := context.WithCancel(context.Background())
	var all [2]*Peers
	var pools [2]*route.Pool
	ended := make(chan struct{}, 2)
	for i := range all {
		var err error
		all[i], err = Open(Config{Redis: redis.URL(), Prefix: "w/", Name: fmt.Sprint("router-", i), StreamBytes: 1 << 20,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		pools[i] = newPool(t, &clock{began}, 2, 1<<16)
		all[i].Join("p", pools[i])
	}
	member := func(i int) *Member { return all[i].list()[0] }
	begun := 0 // rounds in passing
	member(0).sender.beginRound = func(at time.Time) bool {
		did := all[0].tryRound(at)
		if did {
			begun++
		}
		return did
	}
	for i := range all {
		go func() { all[i].Run(ctx); ended <- struct{}{} }()
	}
	defer func() { stop(); <-ended; <-ended }()
	tell := func() { // a request a millisecond
		now := time.Now()
		to := member(0).sender
		id := to.Sent(&route.Sent{Worker: worker.KeyOf("w1"), Space: 9, Est: .1, Tokens: 64, Block: 32}, nil, now)
		to.FirstByte(id, now)
		to.Ended(id, now)
		time.Sleep(time.Millisecond)
	}
	heard := func() bool {
		told, heard := member(0).sender.Stats(), member(1).receiver.Stats()
		return !member(0).sender.hasQueued() && told.Waiting == 0 && heard.Frames+heard.Repeated >= told.Frames && heard.Open == 0
	}
	const full = "CONFIG SET maxmemory 1"
	for _, breaks := range []string{"PING", "CLIENT KILL TYPE normal SKIPME yes", "CLIENT PAUSE 900 ALL", full, "CONFIG SET maxmemory 0"} {
		redis.Do(breaks)
		for range 50 {
			tell()
		}
		before := begun
		if breaks == full {
			continue // Redis takes nothing until the next one
		}
		eventually(t, "rounds are begun in passing", func() bool { tell(); return begun > before+3 })
		eventually(t, "the other router has received all", heard)
	}
	if s := member(1).receiver.Stats(); s.Gaps+s.Foreign+s.Flooded+s.Unlinked > 0 {
		t.Errorf("something was lost: %+v", s)
	}
}
