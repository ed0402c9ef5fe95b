package resp

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// TestAnnouncedBodies: a client that sends only the head of a SET evicts nothing.
func TestAnnouncedBodies(t *testing.T) {
	s, store := serve(t, Config{})
	c := dial(t, s)
	for i := range 60 {
		ask(t, c, cmd("SET", fmt.Sprint("k", i), string(make([]byte, 1<<20))))
	}
	var open []net.Conn
	for range 4 {
		n := dial(t, s)
		fmt.Fprintf(n, "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$%d\r\n%s", 16<<20, make([]byte, firstPiece-1))
		open = append(open, n)
	}
	for s.Stats().BytesIn < 60<<20+4*firstPiece {
		time.Sleep(time.Millisecond)
	}
	if n := store.Stats(); n.Entries != 60 || n.Fillings != 0 {
		t.Errorf("%d values of 60 are left, %d are being written", n.Entries, n.Fillings)
	}
	for _, n := range open {
		n.Close()
	}
}

// TestSlowBodies: a client that sends a value byte by byte is closed when the time for the whole value is over.
func TestSlowBodies(t *testing.T) {
	f := func(head string, size int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			store, err := kvstore.Open(kvstore.Config{MaxBytes: 32 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close(time.Second)
			near, far := net.Pipe()
			s := &Server{config: Config{Store: store, Promise: time.Second, Log: slog.New(slog.DiscardHandler)}}
			ended := make(chan time.Time, 1)
			start := time.Now()
			go func() {
				newConn(s, far, 1).serve()
				ended <- time.Now()
				far.Close()
			}()
			go func() { _, _ = io.Copy(io.Discard, near) }()
			if _, err := io.WriteString(near, head); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				time.Sleep(pieceTime - time.Second)
				_, err = near.Write([]byte{1})
			}
			lasted := (<-ended).Sub(start)
			if most := timeFor(size); lasted > most || s.Stats().Stalled != 1 || store.Stats().Fillings != 0 {
				t.Errorf("it was closed after %s; want %s at most; %+v", lasted, most, s.Stats())
			}
		})
	}
	piece := string(bytes.Repeat([]byte{1}, firstPiece))
	f(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$%d\r\n%s", 16<<20, piece), 16<<20)
	f("*2\r\n$3\r\nGET\r\n$8000000\r\n", maxArgBuf)
}
