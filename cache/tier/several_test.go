package tier

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// TestCluster: the store works over a cluster of three, with all that it asks for: scripts over two keys, batches, and
// a look ahead.
func TestCluster(t *testing.T) {
	t.Parallel()
	url, nodes := redistest.Cluster(t)
	if err := Check(t.Context(), url, nil, NeedsOfStore); err != nil {
		t.Error(err)
	}
	first, _ := open(t, Config{Redis: url, Timeout: patient})
	for i := range 50 {
		if _, set := first.SetIfAbsent("ns", fmt.Sprint(i), []byte("here"), time.Hour); !set {
			t.Fatalf("value %d is not set", i)
		}
	}
	second := notRun(t, Config{Redis: url, Timeout: patient})
	if n, err := second.Load(t.Context()); n != 50 || err != nil {
		t.Errorf("%d of 50 read ahead, %v", n, err)
	}
	third := notRun(t, Config{Redis: url, Timeout: patient})
	if v, _, ok, err := third.Find("ns", "7"); string(v) != "here" || !ok || err != nil {
		t.Errorf("%q, %v, %v", v, ok, err)
	}
	if st := first.Stats().L2; st.Failures > 0 || st.Open {
		t.Errorf("%+v", st)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "redis://"), ":") // without ?cluster=true
	port, _, _ = strings.Cut(port, "?")
	err := Check(t.Context(), "redis://127.0.0.1:"+port, nil, NeedsOfStore)
	if err == nil { // this node has the slot of the first key
		err = Check(t.Context(), nodes[1].URL(), nil, NeedsOfStore)
	}
	if err == nil || !strings.Contains(err.Error(), "?cluster=true") {
		t.Errorf("a node of a cluster by itself: %v", err)
	}
}

// TestSentinelFailover: the primary dies, and the store goes on with the one that a Sentinel names next.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	url, primary, _ := redistest.Sentinels(t)
	s, _ := open(t, Config{Redis: url, Timeout: patient})
	s.Set("ns", "before", []byte("1"), time.Hour)
	time.Sleep(300 * time.Millisecond) // for the replica
	primary.Kill()
	s.Set("ns", "while", []byte("2"), time.Hour)
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		other := notRun(t, Config{Redis: url, Timeout: patient})
		before, _ := other.Get("ns", "before")
		while, _ := other.Get("ns", "while")
		if string(before) == "1" && string(while) == "2" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("20 s after the primary died another router reads %q and %q; the store: %+v", before, while, s.Stats().L2)
		}
	}
	if s.Lost() {
		t.Error("the store is still without Redis")
	}
}

// lines counts the lines that say what to do.
func lines(log *logged) int { return strings.Count(strings.Join(log.all(), ""), "remedy=") }

// TestRedisOfEveryKind: what a Redis refuses is one line that says what to do, from a check and from the store.
func TestRedisOfEveryKind(t *testing.T) {
	t.Parallel()
	f := func(what, url, remedy string) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			err := Check(t.Context(), url, nil, NeedsOfStore)
			if err == nil || !strings.Contains(err.Error(), remedy) || strings.Contains(err.Error(), "\n") ||
				strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v; want %q", err, remedy)
			}
			s, log := open(t, Config{Redis: url, Timeout: patient})
			for range 10 {
				s.Set("ns", "k", []byte("v"), time.Hour)
			}
			for end := time.Now().Add(10 * time.Second); lines(log) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			}
			if why := s.Stats().L2.Why; !strings.Contains(why, remedy) || lines(log) != 1 {
				t.Errorf("the store says %q, in %d lines", why, lines(log))
			}
		})
	}
	locked := redistest.Start(t)
	locked.Do("ACL SETUSER history on >hidden ~{warmpath}/history* +ping +set +expire +xadd") // of what docs/routers.md lists
	if err := Check(t.Context(), strings.Replace(locked.URL(), "unix://", "unix://history:hidden@", 1), nil,
		NeedsOfHistory); err != nil {
		t.Errorf("a user for the history alone: %v", err)
	}
	const store = "+ping +time +get +set +getrange +pttl +scan +eval +evalsha +script|load +setnx +exists +pexpire +persist +del"
	locked.Do("ACL SETUSER store on >hidden ~{warmpath}:* " + store) // as docs/routers.md lists it
	own := strings.Replace(locked.URL(), "unix://", "unix://store:hidden@", 1)
	if err := Check(t.Context(), own, nil, NeedsOfStore); err != nil {
		t.Errorf("a user for the store alone: %v", err)
	}
	s, _ := open(t, Config{Redis: own, Timeout: patient})
	s.Set("ns", "k", []byte("v"), time.Hour)
	s.Touch("ns", "k", 2*time.Hour)
	s.CompareAndSwap("ns", "k", []byte("v"), []byte("w"), time.Hour)
	s.Delete("ns", "k")
	time.Sleep(3 * pulse)
	if _, err := s.Load(t.Context()); err != nil || s.Stats().L2.Failures > 0 {
		t.Errorf("a user for the store alone: %v, %+v", err, s.Stats().L2)
	}
	_, addr := redistest.Port(t)
	f("no such database", "redis://"+addr+"/99", "correct the database")
	f("no TLS", "rediss://"+addr, "whether rediss:// or redis:// fits it")
	f("nobody", "redis://127.0.0.1:1", "start it, or correct host and port")
	f("no cluster", "redis://"+addr+"?cluster=true", "leave cluster=true out")
	for _, r := range redistest.Refusals(t) {
		f(r.Name, r.URL, r.Remedy)
	}
}

// TestOneNodeOfACluster: a cluster of one node, as managed ones may be, serves by a plain URL too: two stores, one of each
// URL, have the same values, and a check says so.
func TestOneNodeOfACluster(t *testing.T) {
	t.Parallel()
	url, _ := redistest.NodeWithAll(t)
	var stores [2]*Store
	for i, url := range []string{url, url + "?cluster=true"} {
		if err := Check(t.Context(), url, nil, NeedsOfStore); err != nil {
			t.Errorf("a check says %v", err)
		}
		if err := Check(t.Context(), url, nil, NeedsOfHistory); err != nil {
			t.Errorf("a check of the history says %v", err)
		}
		s, log := open(t, Config{Redis: url, Timeout: patient})
		stores[i] = s
		defer func() {
			if st := s.Stats().L2; st.Failures > 0 || st.Owing > 0 || lines(log) > 0 {
				t.Errorf("%+v\n%s", st, log.all())
			}
		}()
	}
	for i := range 20 {
		key := fmt.Sprint(i)
		stores[i%2].SetIfAbsent("ns", key, []byte("v"), time.Hour)
		if v, ok := stores[1-i%2].Get("ns", key); string(v) != "v" || !ok {
			t.Errorf("the value %d is %q, %v at the other store", i, v, ok)
		}
	}
}
