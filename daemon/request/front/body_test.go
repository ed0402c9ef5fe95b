package front

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// TestBodyRead: what stands of a body under its bound and its length.
func TestBodyRead(t *testing.T) {
	f := func(body string, left, room int64, want string, wantErr error) {
		t.Helper()
		in := bodyReader{r: strings.NewReader(body), left: left, room: room}
		got, err := io.ReadAll(&in)
		if string(got) != want || !errors.Is(err, wantErr) {
			t.Errorf("%q, left %d, room %d: %q, %v; want %q, %v", body, left, room, got, err, want, wantErr)
		}
		if done := wantErr == nil; in.done() != done || !in.Passed() {
			t.Errorf("%q, left %d, room %d: done %v, passed %v", body, left, room, in.done(), in.Passed())
		}
	}
	f("hello", 5, 5, "hello", nil)
	f("hello", 5, 9, "hello", nil)
	f("hello", -1, 5, "hello", nil)
	f("", -1, 5, "", nil)
	f("hello", -1, 4, "", message.ErrTooLarge)
	f("hello", 5, 4, "", message.ErrTooLarge)
	f("hell", 5, 9, "hell", io.ErrUnexpectedEOF)
}

func TestBodyReadsNothingBehindTheBody(t *testing.T) {
	r := strings.NewReader("hello")
	in := bodyReader{r: r, left: 5, room: 9}
	if _, err := io.ReadFull(&in, make([]byte, 5)); err != nil {
		t.Fatal("the body cannot be read")
	}
	r.Reset("GET / HTTP/1.1")
	if n, err := in.Read(make([]byte, 9)); n != 0 || err != io.EOF || r.Len() != 14 {
		t.Errorf("%d, %v: of the next request %d bytes are left; want 14", n, err, r.Len())
	}
}

// TestBodyDeadlines: the first piece comes under the header's deadline, and each one after has its own.
func TestBodyDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, client := net.Pipe()
		defer ours.Close()
		in := bodyReader{conn: ours, r: ours, left: -1, room: 99, pause: 1000, buffer: new(buffer)}
		go func() {
			for range 5 {
				_, _ = client.Write([]byte("x"))
				time.Sleep(900 * time.Millisecond)
			}
		}()
		b := make([]byte, 9)
		for i := range 5 {
			if n, err := in.Read(b); n != 1 || err != nil {
				t.Fatalf("piece %d: %d, %v", i, n, err)
			}
		}
		began := time.Now()
		if n, err := in.Read(b); n != 0 || !errors.Is(err, message.ErrSlowBody) {
			t.Errorf("a piece that does not come: %d, %v; want %v", n, err, message.ErrSlowBody)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it was awaited for %v; want 1s", took)
		}
		client.Close()
	})
}

// TestBodyRate: a body that comes byte by byte is given up after 30 s, however short each pause is; one of the least rate
// goes on, and so does one that waits for its worker.
func TestBodyRate(t *testing.T) {
	f := func(name string, piece int, every, worker time.Duration, before, pieces, want int) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, client := net.Pipe()
				defer client.Close()
				defer ours.Close()
				in := bodyReader{conn: ours, r: ours, left: -1, room: 1 << 40, pause: 20_000, buffer: new(buffer)}
				go func() {
					_, _ = client.Write(make([]byte, before))
					for range pieces {
						if _, err := client.Write(make([]byte, piece)); err != nil {
							return
						}
						time.Sleep(every)
					}
				}()
				if n, err := io.CopyN(io.Discard, &in, int64(before)); err != nil {
					t.Fatalf("%d, %v", n, err)
				}
				b, got := make([]byte, piece), 0
				for got < pieces {
					n, err := io.ReadFull(&in, b)
					if err != nil && !errors.Is(err, message.ErrSlowBody) {
						t.Fatalf("%d, %v", n, err)
					}
					if err != nil {
						break
					}
					got++
					time.Sleep(worker)
				}
				if got < want-1 || got > want {
					t.Errorf("%d pieces of %d came; want %d, or one less", got, pieces, want)
				}
				ours.Close()
				time.Sleep(every) // until the client has noticed
			})
		})
	}
	f("a byte in 2 s", 1, 2*time.Second, 0, 0, 1000, 16)
	f("a byte in 2 s after 64 MiB", 1, 2*time.Second, 0, 64<<20, 1000, 16)
	f("the least rate after 64 MiB", leastRate, time.Second, 0, 64<<20, 200, 200)
	f("the least rate", leastRate, time.Second, 0, 0, 200, 200)
	f("half of it", leastRate/2, time.Second, 0, 0, 200, 60)
	f("a worker that takes a minute for each piece", 1, time.Second, time.Minute, 0, 100, 100)
}

// TestBodyReadStart: the first bytes are held, the rest is left to the Tail.
func TestBodyReadStart(t *testing.T) {
	f := func(body string, length int64, most int, want string, wantErr error) {
		t.Helper()
		b := bodyReader{r: strings.NewReader(body), left: length, room: 1 << 20, buffer: newBuffer(length, holding{})}
		err := b.readStart(&b, length, most)
		if string(b.buffer.first) != want || !errors.Is(err, wantErr) {
			t.Errorf("%d bytes, length %d, most %d: %d bytes, %v; want %d, %v", len(body), length, most, len(b.buffer.first), err,
				len(want), wantErr)
		}
		in := &message.Inbound{Body: b.buffer.first, Tail: &b}
		b.free(in)
		b.free(in) // a second time is nothing
		if in.Body != nil || in.Tail != nil || b.buffer != nil {
			t.Error("memory that was given back is still held")
		}
	}
	long := strings.Repeat("0123456789", 1000)
	f(long, 10_000, 20_000, long, io.EOF)
	f(long, -1, 20_000, long, io.EOF)
	f(long, 10_000, 500, long[:500], nil)
	f(long, -1, 500, long[:500], nil)
	f(long, 10_001, 20_000, long, io.ErrUnexpectedEOF)
	f("", -1, 500, "", io.EOF)
}

// TestAnnouncedBodiesTakeNoMemory: a body takes memory as it comes, and in the end no more than it has.
func TestAnnouncedBodiesTakeNoMemory(t *testing.T) {
	f := func(come int, length int64, most, want int) {
		t.Helper()
		b := bodyReader{r: strings.NewReader(strings.Repeat("x", come)), left: length, room: 1 << 30,
			buffer: newBuffer(length, holding{})}
		_ = b.readStart(&b, length, most)
		if got := cap(b.buffer.first); len(b.buffer.first) != min(come, most) || got > want+want/4 {
			t.Errorf("%d of %d bytes have come: %d are held in %d", come, length, len(b.buffer.first), got)
		}
	}
	const most = 8 << 20
	f(1000, most, most, max(firstPiece, keepBuffer))
	f(1<<20, most, most, 4<<20)
	f(most, most, most, most)
	f(3<<20, 3<<20, most, 4<<20)
	f(most+1, -1, most, most)
}
