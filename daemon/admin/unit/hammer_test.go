package unit

import (
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestToldHammer: however reloads, the beginning and the end fall together, the first message is READY, the last one
// STOPPING, and there is one of these.
func TestToldHammer(t *testing.T) {
	m, l, socket := managed(t)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 50 {
				_ = m.Reload(func() error { return nil })
				switch {
				case i == 10:
					m.Ready("serving")
				case i == 40 && g == 3:
					m.Stopping("draining")
				}
			}
		})
	}
	go func() {
		all.Wait()
		_ = send(socket, "end")
	}()
	var told []string
	for !slices.Contains(told, "end") {
		l.SetReadDeadline(time.Now().Add(30 * time.Second))
		b := make([]byte, 1000)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(b[:n]), "\n")
		told = append(told, first)
	}
	told = told[:len(told)-1]
	if n := len(told); n < 3 || told[0] != "READY=1" || slices.Index(told, "STOPPING=1") != n-1 {
		t.Errorf("%d messages: %q", n, told)
	}
}

// TestGatesHammer: an inherited socket goes to one listener, and after it was handed over every Accept ends.
func TestGatesHammer(t *testing.T) {
	const each = 5
	keys := []string{"a", "b", "c"}
	s := gates{ours: make(chan struct{}), inherited: map[string][]net.Listener{}}
	for _, key := range keys {
		for range each {
			s.inherited[key] = append(s.inherited[key], tcp(t))
		}
	}
	var takers, servers sync.WaitGroup
	var taken sync.Map
	var ended atomic.Int64
	for range 4 {
		takers.Go(func() {
			for range 2 * each {
				for _, key := range keys {
					l := s.take(key)
					if l == nil {
						continue
					}
					if _, before := taken.LoadOrStore(l, true); before {
						t.Errorf("%s is taken twice", l.Addr())
					}
					g := s.add(key, l)
					servers.Go(func() {
						if _, err := g.Accept(); errors.Is(err, net.ErrClosed) {
							ended.Add(1)
						}
					})
					servers.Go(func() { time.Sleep(time.Millisecond); g.Close() })
				}
				s.held("127.0.0.1:1")
				files, names, err := s.files()
				if err != nil || len(files) != len(names) {
					t.Errorf("%d files, %q, %v", len(files), names, err)
				}
				closeAll(files)
			}
		})
	}
	takers.Wait()
	servers.Go(s.open)
	s.hand()
	servers.Wait()
	if n := int64(len(s.all)); n != int64(each*len(keys)) || ended.Load() != n {
		t.Errorf("%d listeners were taken and %d ended", n, ended.Load())
	}
}
