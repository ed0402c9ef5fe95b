package bugs

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// A number is believed against what was seen before. Two starts of a process in turn are a balancer in front of two pods,
// no restart each second. A gauge that grows by the requests that hang is no progress. scrape_interval is shortened.
var numbers = []wallCase{
	{"two-process-starts-in-turn-are-no-restarts", service(2)},
	{"three-process-starts-in-turn-are-no-restarts", service(3)},
	{"a-url-of-two-pods-gets-its-share", serviceShare},
	{"a-new-process-start-is-one-restart", trueRestart},
	{"a-hang-with-a-growing-waiting-gauge-is-left-alone", hang(func(asked int) string { return running(0, asked, 7) })},
	{"a-hang-with-a-growing-running-gauge-is-left-alone", hang(func(asked int) string { return running(asked, 0, 7) })},
	{"a-hang-with-a-still-gauge-is-left-alone", hang(func(int) string { return running(1, 0, 7) })},
}

// started is a page of metrics of a process that was started then.
func started(at float64) string {
	return wire.Metrics(32768) + fmt.Sprintf("# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %f\n", at)
}

// pods is an engine whose URL has n processes behind it, each scrape another.
func (l *lab) pods(n int) *engine.Engine {
	var turn atomic.Int64
	return l.engine(&engine.Engine{Metrics: func() string {
		return started(1_700_000_000.5 + 777*float64(int(turn.Add(1))%n))
	}})
}

const often = "scrape_interval = \"200ms\"\n"

func service(n int) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		always := "[sessions]\nbind = \"always\"\n"
		r := l.routerWith(rig.Router{Pool: often, Strategies: always}, l.pods(n), l.engine(&engine.Engine{}))
		long := strings.Repeat("the same long text ", 200)
		found := 0
		for i := range 10 {
			a := r.post(chatPath, chat(long), "X-Warmpath-Explain: 1", "X-Session-Id: one")
			if held, _ := strconv.Atoi(field(a, "x-warmpath-matched-blocks")); held > 0 && i > 0 {
				found++
			}
			time.Sleep(350 * time.Millisecond)
		}
		lines := r.warned("restart")
		return fmt.Sprintf("%d lines of a restart in 15 scrapes; the prefix found %d of 9 times", lines, found),
			lines <= n-1 && found >= 10-n // the first sight of each process may be a restart
	}
}

func serviceShare(l *lab) (string, bool) {
	var asked atomic.Int64
	e := l.pods(2)
	e.Post = func(c *wire.Call) bool { asked.Add(1); return slowly(c) }
	r := l.routerWith(rig.Router{Pool: often}, e, l.engines(1, slowly)[0])
	all := clients(8, 40, func(k, i int) wire.Answer { return r.chat(fmt.Sprintf("%d %d question", k, i)) })
	return fmt.Sprintf("%d of 320 requests, %d refused", asked.Load(), refused(all)), asked.Load() >= 110 && refused(all) == 0
}

// trueRestart is a control: another start time that stays is a new process with an empty cache.
func trueRestart(l *lab) (string, bool) {
	var again atomic.Bool
	e := l.engine(&engine.Engine{Metrics: func() string {
		if again.Load() {
			return started(1_700_000_777)
		}
		return started(1_700_000_000)
	}})
	r := l.routerWith(rig.Router{Pool: often}, e)
	long := strings.Repeat("the same long text ", 200)
	for range 2 {
		r.chat(long)
		time.Sleep(500 * time.Millisecond)
	}
	again.Store(true)
	time.Sleep(1500 * time.Millisecond)
	a := r.post(chatPath, chat(long), "X-Warmpath-Explain: 1")
	lines, held := r.warned("restart"), field(a, "x-warmpath-matched-blocks")
	return fmt.Sprintf("%d lines of a restart, then %s blocks found", lines, held), lines == 1 && held == "0"
}

// hang has one of two engines answer nobody while its /health is good; the other one takes 1.5 s, so that it is as loaded.
// Clients leave after 12 s, as a stream's leaving shows a hang only when it has waited for 10. Of the requests that come
// after 25 s, hardly one may meet the hang: one at a time is a trial.
func hang(page func(asked int) string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var asked atomic.Int64
		e := l.engine(&engine.Engine{
			Post:    func(c *wire.Call) bool { asked.Add(1); c.Wait(time.Minute); return false },
			Metrics: func() string { return page(int(asked.Load())) },
		})
		r := l.routerWith(rig.Router{Pool: often}, e, l.engines(1, func(c *wire.Call) bool {
			return !c.Wait(1500*time.Millisecond) && engine.Echo(c)
		})[0])
		began := time.Now()
		var wait sync.WaitGroup
		wait.Go(func() {
			every(250*time.Millisecond, 100, func(i int) wire.Answer { return leave(r.Addr, i, 12*time.Second) })
		})
		time.Sleep(time.Until(began.Add(25 * time.Second)))
		before := asked.Load()
		all := every(100*time.Millisecond, 40, func(i int) wire.Answer { return leave(r.Addr, 1000+i, 4*time.Second) })
		met := asked.Load() - before
		wait.Wait()
		return fmt.Sprintf("after 25 s of it %d of 40 requests unanswered, %d met the hang", refused(all), met), met <= 3
	}
}

// leave sends a streamed chat and leaves after so long, if it has no answer by then.
func leave(addr string, i int, after time.Duration) wire.Answer {
	c, err := wire.Dial(addr)
	if err != nil {
		return wire.Answer{Err: err}
	}
	defer c.Close()
	t := time.AfterFunc(after, func() { _ = c.Conn.Close() })
	defer t.Stop()
	_, _ = c.Write(wire.Post(chatPath, chat(fmt.Sprintf("%d question", i), streamed)))
	return c.ReadAnswer(true)
}
