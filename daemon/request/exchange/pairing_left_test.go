package exchange

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
)

// TestPrefillsOfClientsThatLeft: ten clients leave while a prefiller computes the first of their prompts. Once its
// answer shows how fast it is, the prompts that it has not begun with are ended, and nothing is pinned. Nor is it if the
// prefiller is faster than it was, and ends a prompt just when it sees that nobody waits.
func TestPrefillsOfClientsThatLeft(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		t.Run(map[bool]string{false: "not begun", true: "just computed"}[fast], func(t *testing.T) {
			t.Parallel()
			tenLeave(t, fast)
		})
	}
}

func tenLeave(t *testing.T, fast bool) {
	t.Helper()
	d := newDuo(t, pair.NIXL)
	d.pool.Workers.Drain("p1", true, time.Now())
	engine, came := make(chan struct{}, 1), make(chan bool, 10)
	var begun, ended atomic.Int32
	d.compute = func(id string, gone <-chan struct{}) bool {
		if id != "p0" {
			return true
		}
		came <- true
		select {
		case engine <- struct{}{}:
		case <-gone:
			ended.Add(1)
			return fast
		}
		begun.Add(1)
		time.Sleep(time.Second)
		<-engine
		return true
	}
	var clients sync.WaitGroup
	for i := range 10 {
		life := new(message.Life)
		alone.Begin(life)
		clients.Go(func() {
			in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+string(rune('a'+i))+
				strings.Repeat(" word", 2000)+`"}]}`)
			in.Epoch, in.ID = d.epoch, "id-1"
			d.Serve(life, in)
			life.Leave()
		})
		<-came
		defer time.AfterFunc(200*time.Millisecond, func() { life.End(message.ErrClientGone) }).Stop()
	}
	clients.Wait()
	d.freed(t)
	if n := begun.Load(); !fast && n > 2 || ended.Load() < 4 {
		t.Errorf("%d of 10 prompts were computed, for clients that had left: %s", n, d.took())
	}
}
