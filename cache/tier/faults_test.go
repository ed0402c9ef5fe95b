package tier

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

const recovery = 5 * time.Second // reliability: closed again within this after Redis is back

// busy calls the store all the time, four at once, until the test's end, and keeps how long each call took.
type busy struct {
	mu     sync.Mutex // guards calls
	calls  []span
	stalls []span // times at which the machine ran something else
	stop   func()
}

// span is a time between two moments.
type span struct{ from, to time.Time }

// without returns how long s is but for what it has in common with others, which do not overlap.
func (s span) without(others []span) time.Duration {
	took := s.to.Sub(s.from)
	for _, o := range others {
		from, to := s.from, s.to
		if o.from.After(from) {
			from = o.from
		}
		if o.to.Before(to) {
			to = o.to
		}
		took -= max(to.Sub(from), 0)
	}
	return took
}

func keepBusy(t *testing.T, s *Store) *busy {
	b := &busy{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	b.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(b.stop)
	wg.Go(func() { // a sleeper that wakes late shows that the machine is at something else
		for ctx.Err() == nil {
			start := time.Now()
			time.Sleep(time.Millisecond)
			if now := time.Now(); now.Sub(start) > 3*time.Millisecond {
				b.stalls = append(b.stalls, span{start, now})
			}
		}
	})
	for g := range 4 {
		wg.Go(func() {
			for i := g; ctx.Err() == nil; i++ {
				start := time.Now()
				anyCall(s, i)
				call := span{start, time.Now()}
				b.mu.Lock()
				b.calls = append(b.calls, call)
				b.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
	}
	return b
}

func anyCall(s *Store, i int) {
	key := fmt.Sprint(i % 500)
	switch i % 5 {
	case 0:
		s.Set("busy", key, []byte(key), time.Hour)
	case 1:
		s.Touch("busy", key, time.Hour)
	case 2:
		s.SetIfAbsent("busy", key, []byte(key), time.Hour)
	case 3:
		s.Add("busy", "n", 1, time.Hour)
	default:
		s.Get("busy", key)
	}
}

// check ends the calls. The limit holds for the 99th percentile, stalls of the machine left out, with a margin for other
// processes on it: a call that waited for a stopped Redis without a limit would take the 2 s, and every call a Timeout if the
// breaker stayed shut.
func (b *busy) check(t *testing.T, limit time.Duration) {
	t.Helper()
	b.stop()
	var took []time.Duration
	for _, c := range b.calls {
		took = append(took, c.without(b.stalls))
	}
	slices.Sort(took)
	n := len(took)
	if n == 0 {
		t.Fatal("no calls")
	}
	over, _ := slices.BinarySearch(took, limit+time.Millisecond)
	t.Logf("%d calls, %d stalls, p50 %v, p99 %v, max %v; %d over %v",
		n, len(b.stalls), took[n/2], took[n*99/100], took[n-1], n-over, limit)
	if p99 := took[n*99/100]; p99 > 4*limit {
		t.Errorf("p99 of a call is %v; the limit is %v", p99, limit)
	}
	if last := took[n-1]; last > 2*time.Second {
		t.Errorf("a call took %v", last)
	}
}

func waitOpen(t *testing.T, s *Store) {
	t.Helper()
	start := time.Now()
	waittest.Until(t, "the breaker opens", func() bool { return isOpen(s) })
	t.Logf("open after %v", time.Since(start).Round(time.Millisecond))
}

// waitClosed: the machine may be loaded, so the bound that fails is twice the one that is promised.
func waitClosed(t *testing.T, s *Store) {
	t.Helper()
	start := time.Now()
	waittest.Until(t, "the breaker closes", func() bool { return !isOpen(s) })
	took := time.Since(start)
	t.Logf("closed after %v", took.Round(time.Millisecond))
	if took > 2*recovery {
		t.Errorf("recovered after %v; want %v", took, recovery)
	}
}

// Killed, and back without its data: nothing is lost, in either direction.
func TestKilledAndRestarted(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	s, lines := open(t, Config{Redis: r.URL(), Timeout: 50 * time.Millisecond})
	for i := range 300 {
		s.Set("ns", fmt.Sprint("before", i), []byte("1"), time.Hour)
	}
	s.Set("ns", "changed", []byte("1"), time.Hour)
	b := keepBusy(t, s)
	r.Kill()
	waitOpen(t, s)
	for i := range 300 {
		want(t, s, fmt.Sprint("before", i), "1")
		s.Set("ns", fmt.Sprint("during", i), []byte("2"), time.Hour)
	}
	s.Set("ns", "changed", []byte("2"), time.Hour)
	s.Delete("ns", "before0")
	r.Start()
	waitClosed(t, s)
	b.check(t, 50*time.Millisecond)
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	want(t, other, "changed", "2")
	for i := range 300 {
		want(t, other, fmt.Sprint("during", i), "2")
		if i > 0 { // s reads it, finds that Redis lost it, and gives it back
			waittest.Until(t, "Redis has what it lost", func() bool {
				want(t, s, fmt.Sprint("before", i), "1")
				_, ok := other.Get("ns", fmt.Sprint("before", i))
				return ok
			})
		}
	}
	wantNone(t, other, "before0")
	wantNone(t, s, "before0")
	// On a loaded machine Redis may have been given up before it was killed: it is then told what it would have lost.
	var st L2Stats
	for end := time.Now().Add(patient); st.Told < 301 || st.Told+st.Restored < 600; time.Sleep(time.Millisecond) {
		if st = s.Stats().L2; time.Now().After(end) {
			t.Fatalf("%+v; want 301 told, and 299 restored or told too", st)
		}
	}
	if st.Lost != 0 {
		t.Errorf("%+v; want none lost", st)
	}
	oneEpisode(t, s, lines)
}

// oneEpisode wants one line when Redis was lost and one when it was back, however many calls failed.
func oneEpisode(t *testing.T, s *Store, lines *logged) {
	t.Helper()
	waittest.Until(t, "each loss and each return is logged once", func() bool {
		all, opens := strings.Join(lines.all(), ""), int(s.Stats().L2.Opens)
		return opens > 0 && strings.Count(all, "Redis is lost") == opens && strings.Count(all, "Redis is back") == opens
	})
}

// A deletion while Redis is away, which then comes back with the value.
func TestDeletionsAreTold(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	s, _ := open(t, Config{Redis: r.URL(), Timeout: 50 * time.Millisecond})
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	s.Set("ns", "k", []byte("1"), time.Hour)
	s.Set("ns", "touched", []byte("1"), time.Minute)
	want(t, other, "k", "1")
	r.Signal(syscall.SIGSTOP)
	waitOpen(t, s)
	s.Delete("ns", "k")
	wantNone(t, s, "k")
	if !s.Touch("ns", "touched", time.Hour) {
		t.Error("Touch failed without Redis")
	}
	r.Signal(syscall.SIGCONT)
	wantNone(t, s, "k") // before and after Redis gets the deletion
	waitClosed(t, s)
	wantNone(t, s, "k")
	waittest.Until(t, "the other router forgets it too", func() bool { _, ok := other.Get("ns", "k"); return !ok })
	waittest.Until(t, "the longer life is told", func() bool {
		return r.bare.PTTL(context.Background(), s.l2.keys.key(id{"ns", "touched"})).Val() > 50*time.Minute
	})
	waittest.Until(t, "nothing is owed", func() bool { return s.Stats().L2.Owing == 0 })
}

// With the limit of production: stopped for 2 s, no call waits longer than that limit, most not at all.
func TestStopped(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	s, lines := open(t, Config{Redis: r.URL()})
	b := keepBusy(t, s)
	time.Sleep(300 * time.Millisecond)
	r.Signal(syscall.SIGSTOP)
	waitOpen(t, s)
	time.Sleep(2 * time.Second)
	r.Signal(syscall.SIGCONT)
	waitClosed(t, s)
	b.check(t, 5*time.Millisecond)
	t.Logf("%+v", s.Stats().L2)
	oneEpisode(t, s, lines)
}

func TestDownAtStart(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	r.Kill()
	s, lines := open(t, Config{Redis: "unix://router:secret-word@" + r.Socket(), Timeout: 50 * time.Millisecond})
	s.Set("ns", "k", []byte("1"), time.Hour)
	want(t, s, "k", "1")
	wantNone(t, s, "none")
	waitOpen(t, s) // without any traffic
	r.Start()
	if !isOpen(s) { // it is there, and does not know the user yet
		t.Error("closed without being let in")
	}
	if err := r.bare.Do(context.Background(), "ACL", "SETUSER", "router", "on", ">secret-word", "~*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	waitClosed(t, s)
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	want(t, other, "k", "1")
	oneEpisode(t, s, lines)
	if all := strings.Join(lines.all(), ""); strings.Contains(all, "secret-word") {
		t.Errorf("the password was logged:\n%s", all)
	}
}

// Redis refuses every command while it loads its file.
func TestLoading(t *testing.T) {
	t.Parallel()
	r := startRedis(t, "--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
	ctx := context.Background()
	for i := range 1000 {
		r.bare.Set(ctx, fmt.Sprint("filler", i), strings.Repeat("x", 200), 0)
	}
	if err := r.bare.Save(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	// On a machine that holds this process up for 2 s, Redis has loaded before it is asked. Then it loads once more.
	saw := false
	var s *Store
	for try := 0; try < 10 && !saw; try++ {
		r.Kill()
		r.Launch() // does not wait
		if s != nil {
			s.Close()
		}
		s, _ = open(t, Config{Redis: r.URL(), Timeout: 50 * time.Millisecond})
		waittest.Until(t, "Redis loads", func() bool {
			err := r.bare.Ping(ctx).Err()
			saw = err != nil && strings.Contains(err.Error(), "LOADING")
			return saw || err == nil
		})
	}
	if !saw {
		t.Fatal("ten times Redis had loaded its file before it was asked")
	}
	s.Set("ns", "k", []byte("1"), time.Hour)
	want(t, s, "k", "1")
	waitOpen(t, s)
	waitClosed(t, s)
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	want(t, other, "k", "1")
}

func TestFlushed(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	s, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	s.Set("ns", "k", []byte("1"), time.Hour)
	s.Set("ns", "touched", []byte("2"), time.Hour)
	r.bare.FlushAll(context.Background())
	r.bare.ScriptFlush(context.Background())
	if !s.Touch("ns", "touched", time.Hour) {
		t.Error("Touch: lost with the flush")
	}
	want(t, other, "touched", "2")
	waittest.Until(t, "the value is back in Redis", func() bool {
		want(t, s, "k", "1")
		_, ok := other.Get("ns", "k")
		return ok
	})
	if s.Stats().L2.Failures > 0 {
		t.Error("a flush counted as failure")
	}
}

func TestGarbage(t *testing.T) {
	r := startRedis(t)
	s, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	ctx := context.Background()
	put := map[string]func(key string){
		"list":  func(key string) { r.bare.LPush(ctx, key, "a") },
		"hash":  func(key string) { r.bare.HSet(ctx, key, "a", "b") },
		"plain": func(key string) { r.bare.Set(ctx, key, "not ours", 0) },
		"empty": func(key string) { r.bare.Set(ctx, key, "", 0) },
		"tomb?": func(key string) { r.bare.Set(ctx, key, "tomb", 0) },
	}
	for name, garbage := range put {
		for op, f := range map[string]func(key string) bool{
			"SetIfAbsent":    func(key string) bool { _, set := s.SetIfAbsent("ns", key, []byte("5"), 0); return set },
			"CompareAndSwap": func(key string) bool { return s.CompareAndSwap("ns", key, nil, []byte("5"), 0) },
			"Add":            func(key string) bool { n, ok := s.Add("ns", key, 5, 0); return ok && n == 5 },
			"Set":            func(key string) bool { s.Set("ns", key, []byte("5"), 0); return true },
		} {
			key := name + op
			garbage(s.l2.keys.key(id{"ns", key}))
			wantNone(t, s, key)
			if s.Touch("ns", key, time.Hour) {
				t.Errorf("%s: Touch found a value", key)
			}
			if !f(key) {
				t.Errorf("%s: garbage stood in the way", key)
			}
			want(t, s, key, "5")
		}
		garbage(s.l2.keys.key(id{"ns", name}))
		s.Delete("ns", name)
		wantNone(t, s, name)
	}
	if st := s.Stats().L2; st.Garbage < 40 || st.Failures != 0 || st.Open {
		t.Errorf("%+v; want garbage counted, and no failures", st)
	}
}

// A proxy that adds delay to every answer.
func TestSlow(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	var delay atomic.Int64
	url := "redis://" + proxy(t, listen(t), r.Socket(), &delay) + "/0"
	s, lines := open(t, Config{Redis: url})
	b := keepBusy(t, s)
	delay.Store(int64(20 * time.Millisecond))
	waitOpen(t, s)
	s.Set("ns", "k", []byte("1"), time.Hour)
	want(t, s, "k", "1")
	time.Sleep(500 * time.Millisecond)
	if !isOpen(s) {
		t.Error("closed, though every answer takes 20 ms")
	}
	delay.Store(0)
	waitClosed(t, s)
	b.check(t, 5*time.Millisecond)
	if !strings.Contains(strings.Join(lines.all(), ""), "Redis is lost") {
		t.Error("not logged")
	}
}

func TestBadURL(t *testing.T) {
	for _, url := range []string{
		"http://h", "h:6379", "unix://", "redis://h/x", "redis://:hid/den@h:1", "redis://:12/hidden@h", "redis://h:hidden",
		"redis://u:%zzhidden@h", "redis://u:hidden@h?no_such=1", "redis://u:hidden@h?db=hidden",
	} {
		_, err := New(Config{Redis: url})
		if err == nil || !strings.HasPrefix(err.Error(), "tier: ") || strings.Contains(err.Error(), "hid") {
			t.Errorf("New(%q): %v; want an error without the password", url, err)
		}
	}
}
