package tier

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

func TestGuard(t *testing.T) {
	f := func(fine bool, replies string) {
		t.Helper()
		for _, step := range []int{1, 2, 3, 7, len(replies)} {
			near, far := net.Pipe()
			g := guarded(near, 1000)
			go func() {
				io.ReadFull(far, make([]byte, 4))
				for rest := replies; rest != ""; {
					n := min(step, len(rest))
					if _, err := io.WriteString(far, rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
				}
				far.Close()
			}()
			io.WriteString(g, "PING")
			got, err := io.ReadAll(g)
			if ok := err == nil && string(got) == replies; ok != fine || !fine && !errors.Is(err, errReply) {
				t.Errorf("%.40q in steps of %d: %d bytes, %v; want fine = %v", replies, step, len(got), err, fine)
			}
			near.Close()
		}
	}
	f(true, "+OK\r\n-ERR no\r\n:-5\r\n$-1\r\n*-1\r\n$0\r\n\r\n$5\r\n*9\r\n\n\r\n*2\r\n$1\r\n0\r\n*0\r\n")
	f(true, "$900\r\n"+strings.Repeat("x", 900)+"\r\n")
	f(true, "*3\r\n$1\r\nv\r\n$3\r\nabc\r\n:600\r\n")
	f(false, "*1000000000\r\n")
	f(false, "$1000000000\r\n")
	f(false, "$1001\r\n")
	f(false, "*99999999999999999999999999\r\n")
	f(false, strings.Repeat("*900\r\n", 80))
	f(false, "$900\r\n"+strings.Repeat("x", 900)+"\r\n$200\r\n"+strings.Repeat("x", 200)+"\r\n") // 1,000 for all that was asked at once
	f(false, "HTTP/1.1 400 Bad Request\r\n")
	f(true, "%1\r\n+a\r\n_\r\n>2\r\n$1\r\na\r\n#t\r\n,1.5\r\n(123\r\n=5\r\ntxt:a\r\n!2\r\nno\r\n~0\r\n") // of Sentinels
	f(false, "%1000000000\r\n")
	f(false, strings.Repeat("%900\r\n", 40))
}

// The bounds are of what was asked at once, not of a connection's life.
func TestGuardBeginsAnew(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	g := guarded(near, 100)
	go func() {
		for range 50 {
			io.ReadFull(far, make([]byte, 4))
			io.WriteString(far, "$80\r\n"+strings.Repeat("x", 80)+"\r\n")
		}
	}()
	for i := range 50 {
		io.WriteString(g, "PING")
		if _, err := io.ReadFull(g, make([]byte, 87)); err != nil {
			t.Fatal(i, err)
		}
	}
}

// A line without an end is none.
func TestLongLine(t *testing.T) {
	f := func(bytes int, fine bool) {
		t.Helper()
		var l line
		text := "+" + strings.Repeat("x", bytes-1)
		ok := true
		for i := 0; i < len(text) && ok; i++ {
			_, ok = l.add(text[i], 1<<30)
		}
		if ok != fine {
			t.Errorf("a line of %d bytes: %v", bytes, ok)
		}
	}
	f(maxLine, true)
	f(maxLine+1, false)
}
