package resp

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHammer: clients side by side, some of whom leave in the middle of a value or are made to give their place up, get
// what was put under the key that they name. The counts are their commands', and a Close among them ends them all.
func TestHammer(t *testing.T) {
	s, _ := serve(t, Config{MaxConns: 6})
	value := func(key string) string { return strings.Repeat(key+"|", 3000) }
	asked := make(chan int, 4)
	var all sync.WaitGroup
	for g := range 4 {
		c := dial(t, s)
		ask(t, c, "") // it has sent a command, and keeps its place
		all.Go(func() {
			n := 1
			for i := range 150 {
				key := fmt.Sprint("k", (g+i)%7)
				other := fmt.Sprint("k", (g+3*i)%7)
				got := ask(t, c, cmd("SET", key, value(key))+cmd("GET", other)+cmd("EXISTS", other))
				n += 4
				found := fmt.Sprintf("+OK\r\n$%d\r\n%s\r\n:1\r\n", len(value(other)), value(other))
				if got != found && got != "+OK\r\n$-1\r\n:0\r\n" && !strings.HasPrefix(got, "+OK\r\n$-1\r\n:") {
					t.Errorf("%s: %.100q", other, got)
				}
				s.Stats()
			}
			asked <- n
		})
	}
	all.Go(func() {
		for range 40 {
			for _, text := range []string{cmd("SET", "half", value("half"))[:500], ""} {
				c, err := net.Dial("tcp", s.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = c.Write([]byte(text))
				if text != "" {
					c.Close()
				} else {
					t.Cleanup(func() { c.Close() }) // it stays, and says nothing
				}
			}
		}
	})
	all.Wait()
	want := uint64(0)
	for range 4 {
		want += uint64(<-asked)
	}
	if n := s.Stats(); n.Commands != want || n.Failed != 0 || n.Connections > 6 || n.Refused == 0 {
		t.Errorf("%+v; want %d commands", n, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s.Close(ctx)
	if n := s.Stats(); n.Connections != 0 || ctx.Err() != nil {
		t.Errorf("%d connections after the end, %v", n.Connections, ctx.Err())
	}
}
