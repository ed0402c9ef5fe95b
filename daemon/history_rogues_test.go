package daemon

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// rogue is a router that shares the secret and behaves badly.
type rogue struct {
	*peers.Sender
	t      *testing.T
	c      *redis.Client
	stream string
}

// newRogue makes one that knows what r knows.
func newRogue(t *testing.T, b *redistest.Server, r *running) *rogue {
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: b.Socket()})
	t.Cleanup(func() { c.Close() })
	sender, _ := peers.NewPair(r.shown()[0].Pool, 99)
	return &rogue{sender, t, c, "{warmpath}/history/main"}
}

// frames returns what it has told.
func (o *rogue) frames() [][]byte {
	all := o.Take(64<<20, time.Now())
	o.Confirm(all)
	return all
}

func (o *rogue) write(frame []byte) {
	o.t.Helper()
	add := redis.XAddArgs{Stream: o.stream, Values: []any{"f", frame}}
	if err := o.c.XAdd(context.Background(), &add).Err(); err != nil {
		o.t.Fatal(err)
	}
}

// changed is a frame of which a byte is another and the sum fits.
func changed(frame []byte, at int) []byte {
	body := append([]byte(nil), frame[:len(frame)-4]...)
	body[at]++
	return binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
}

// sends tells of n requests that do not end.
func (o *rogue) sends(n int) {
	for i := range n {
		s := route.Sent{Worker: worker.KeyOf(fmt.Sprint("w", 1+i%3)), Space: 1, Tokens: 32, Block: 32}
		o.Sent(&s, []prompt.Chain{{Hashes: []uint64{uint64(i) | 1}}}, time.Now())
	}
}

// believed reports whether a router's count of what it heard is as wanted.
type believed func(s *peers.ReceiverStats) bool

// Whatever a router that behaves badly writes into the stream, the others count it, say so once, and share as before.
func TestRoguesAmongRouters(t *testing.T) {
	t.Parallel()
	f := func(name, why string, misbehaves func(o *rogue), counted believed) {
		t.Run(name, func(t *testing.T) { outliveRogue(t, name, why, misbehaves, counted) })
	}
	f("of another version", "release", func(o *rogue) {
		o.sends(3)
		for _, frame := range o.frames() {
			o.write(changed(frame, 2))
			o.write(changed(frame, 3))
		}
	}, func(s *peers.ReceiverStats) bool { return s.Versions == 2 && s.Open == 0 })
	f("of another secret", "secret", func(o *rogue) {
		o.sends(3)
		o.write(changed(o.frames()[0], 4))
	}, func(s *peers.ReceiverStats) bool { return s.Secrets == 1 && s.Open == 0 })
	f("that repeats", "", func(o *rogue) {
		o.sends(3)
		frame := o.frames()[0]
		for range 500 {
			o.write(frame)
		}
	}, func(s *peers.ReceiverStats) bool { return s.Repeated >= 499 })
	f("whose messages are cut", "cut or changed", func(o *rogue) {
		o.sends(3)
		frame := o.frames()[0]
		for i := range 30 {
			o.write(frame[:len(frame)-1-i])
		}
	}, func(s *peers.ReceiverStats) bool { return s.Foreign == 30 && s.Open == 0 })
	f("that floods", "too much", func(o *rogue) {
		for range 200_000 { // at most 50,000 a second are heard
			o.FirstByte(1, time.Now())
		}
		for _, frame := range o.frames() {
			o.write(frame)
		}
	}, func(s *peers.ReceiverStats) bool { return s.Flooded > 0 })
	f("that sends without end", "", func(o *rogue) {
		o.sends(20_000) // at most 16,384 are counted in flight; its lease ends meanwhile where the machine is busy
		for _, frame := range o.frames() {
			o.write(frame)
		}
	}, func(s *peers.ReceiverStats) bool { return s.Flooded+s.Expired >= 20_000-16_384 && s.Open <= 16_384 })
}

func outliveRogue(t *testing.T, name, why string, misbehaves func(o *rogue), counted believed) {
	b := redistest.New(t)
	b.Start()
	all, logs := loggedRouters(t, 2, b.URL(), sims(t, 3, vllmsim.Config{}))
	for i, r := range all {
		eventually(t, fmt.Sprintf("router %d hears the other", i), func() bool { return r.hears() == 1 })
	}
	misbehaves(newRogue(t, b, all[0]))
	for i, r := range all {
		eventually(t, "it is counted", func() bool {
			s := r.peers.Stats().Pools[0].Received
			return counted(&s)
		})
		if why == "" {
			continue
		}
		if l := logs[i].wait(t, historyOdd); !strings.Contains(fmt.Sprint(l["why"]), why) || l["remedy"] == nil {
			t.Errorf("router %d says %v; want why it is %q, and what to do", i, l, why)
		}
		if n := len(logs[i].with(t, historyOdd)); n > 1 {
			t.Errorf("router %d says it %d times", i, n)
		}
	}
	if n := chatOver(t, all, name, 6); n < 4 { // all five but where the machine is busy
		t.Errorf("%d of 5 turns followed", n)
	}
	eventually(t, "nothing of it is in flight", func() bool { // its lease ends
		return all[0].peers.Stats().Pools[0].Received.Open+all[1].peers.Stats().Pools[0].Received.Open == 0
	})
	agree(t, all, settles)
}

// hourOff is a way to Redis on which its clock is an hour ahead, as for a router whose own clock is an hour behind.
func hourOff(t *testing.T, b *redistest.Server, by time.Duration) (url string) {
	socket := filepath.Join(filepath.Dir(b.Socket()), fmt.Sprintf("off%d.sock", by/time.Hour))
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("unix", b.Socket())
			if err != nil {
				c.Close()
				continue
			}
			go shift(to, c, -by)
			go shift(c, to, by)
		}
	}()
	return "unix://" + socket
}

// An entry's id, as it is or after which to go on, and the seconds of TIME.
var (
	entryID = regexp.MustCompile(`^(\(?)(\d{13})(-\d+)$`)
	seconds = regexp.MustCompile(`^\d{10}$`)
)

// shift copies what Redis and a client say, with all times changed.
func shift(to, from net.Conn, by time.Duration) {
	defer to.Close()
	defer from.Close()
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		var text string
		if n, err := strconv.Atoi(strings.TrimSpace(line[1:])); err == nil && line[0] == '$' && n >= 0 {
			body := make([]byte, n+2)
			if _, err := io.ReadFull(r, body); err != nil {
				return
			}
			text = string(body[:n])
			if m := entryID.FindStringSubmatch(text); m != nil {
				ms, _ := strconv.ParseInt(m[2], 10, 64)
				text = fmt.Sprint(m[1], ms+by.Milliseconds(), m[3])
			} else if seconds.MatchString(text) {
				s, _ := strconv.ParseInt(text, 10, 64)
				text = fmt.Sprint(s + int64(by.Seconds()))
			}
			line, text = fmt.Sprintf("$%d\r\n", len(text)), text+"\r\n"
		}
		if _, err := io.WriteString(to, line+text); err != nil {
			return
		}
	}
}

// A router whose clock is an hour off, either way, is heard like any other, hears the others, and learns the past.
func TestRoutersWhoseClocksDiffer(t *testing.T) {
	t.Parallel()
	b := redistest.New(t)
	b.Start()
	f := sims(t, 3, vllmsim.Config{})
	urls := []string{b.URL(), hourOff(t, b, time.Hour), hourOff(t, b, -time.Hour)}
	var all []*running
	for i, url := range urls {
		all = append(all, startRouter(t, i, url, "prefixaware", f))
	}
	for i, r := range all {
		eventually(t, fmt.Sprintf("router %d hears the others", i), func() bool { return r.hears() == 2 })
	}
	for i := range 3 {
		if n := chatOver(t, all, fmt.Sprint("clocks ", i), 6); n < 4 {
			t.Errorf("chat %d: %d of 5 turns followed", i, n)
		}
	}
	agree(t, all, settles)
	all = append(all, startRouter(t, 3, urls[1], "prefixaware", f))
	agree(t, all, settles)
	for i, r := range all {
		s := r.peers.Stats().Pools[0]
		if s.Received.Gaps+s.Received.Foreign+s.Received.Unlinked != 0 {
			t.Errorf("router %d: %+v", i, s.Received)
		}
		for _, o := range s.Routers {
			if o.Lag > 20 || time.Since(o.LastSent) > 20*time.Second {
				t.Errorf("router %d hears %s after %v, last at %v", i, o.Name, o.Lag, o.LastSent)
			}
		}
	}
}
