package resp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// recordedLine is what one side sent, as far as the recording kept it.
type recordedLine struct {
	Conn      int
	From      string
	Len       int
	Truncated bool
	Hex       string
	bytes     []byte
}

func readRecording(t *testing.T, file string) (lines []recordedLine) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(data)); d.More(); {
		var l recordedLine
		if err := d.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.bytes, err = hex.DecodeString(l.Hex); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	for i := range lines {
		if l := &lines[i]; l.Truncated && l.From == "client" {
			l.bytes = append(l.bytes, make([]byte, l.Len-len(l.bytes))...)
			if startsCommand(lines[i+1:], l.Conn) { // else the payload goes on in the next read
				copy(l.bytes[l.Len-2:], "\r\n")
			}
		}
	}
	return lines
}

// startsCommand reports whether the connection's next line from the client begins a command.
func startsCommand(rest []recordedLine, conn int) bool {
	for _, l := range rest {
		if l.Conn == conn && l.From == "client" {
			return l.bytes[0] == '*'
		}
	}
	return true
}

var clientID = regexp.MustCompile(`\$2\r\nid\r\n:(\d+)`)

// TestRecorded replays what LMCache sent, and compares every reply with that of redis-server.
func TestRecorded(t *testing.T) {
	files, _ := filepath.Glob("testdata/lmcache-*/*.jsonl")
	if len(files) < 8 {
		t.Fatalf("%d recordings", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "testdata/"), func(t *testing.T) {
			s, store := serve(t, Config{})
			lines := readRecording(t, file)
			if strings.Contains(file, "-miss") { // that server already had one value
				f, err := store.Reserve("r\x00test/model-1b@1@0@abc1@bfloat16", 512)
				if err != nil {
					t.Fatal(err)
				}
				copy(f.Pieces()[0], strings.Repeat("Z", 512))
				f.Commit(kvstore.Terms{})
			}
			if strings.Contains(file, "0.4.3") { // that server had received the same before
				replay(t, s, lines, false)
			}
			replay(t, s, lines, true)
		})
	}
}

// replay sends the clients' bytes, and reads the server's replies, in the order of the recording.
func replay(t *testing.T, s *Server, lines []recordedLine, compare bool) {
	t.Helper()
	conns := map[int]net.Conn{}
	for i, l := range lines {
		c := conns[l.Conn]
		if c == nil {
			s.mu.Lock()
			s.ids = idOf(lines, l.Conn) - 1
			s.mu.Unlock()
			c = dial(t, s)
			conns[l.Conn] = c
			waittest.Until(t, "it is accepted", func() bool { return s.Stats().Connections == len(conns) })
		}
		if l.From == "client" {
			if _, err := c.Write(l.bytes); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got := make([]byte, l.Len)
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		if n, err := io.ReadFull(c, got); err != nil {
			t.Fatalf("line %d: %v after %d bytes of %d: %.100q; recorded %.100q", i+1, err, n, l.Len, got[:n], l.bytes)
		}
		want := l.bytes
		if l.Truncated { // the recording kept less of the value at SET than here
			want = want[:300]
			got = got[:300]
		}
		if compare && !bytes.Equal(got, want) {
			t.Fatalf("line %d: %.200q; recorded %.200q", i+1, got, want)
		}
	}
	for n, c := range conns { // no further reply came
		c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if b, err := io.ReadAll(c); len(b) > 0 || err == nil {
			t.Errorf("connection %d: %.100q, %v after the last reply", n, b, err)
		}
		c.Close()
	}
	waittest.Until(t, "all are gone", func() bool { return s.Stats().Connections == 0 })
}

// idOf returns the number that the recorded server gave to a connection.
func idOf(lines []recordedLine, conn int) int64 {
	for _, l := range lines {
		if m := clientID.FindSubmatch(l.bytes); l.Conn == conn && m != nil {
			n, _ := strconv.ParseInt(string(m[1]), 10, 64)
			return n
		}
	}
	return 1
}
