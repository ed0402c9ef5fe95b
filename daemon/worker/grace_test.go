package worker

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// asker is a Holder that notes when it was told, in seconds since it was made.
type asker struct {
	made time.Time
	mu   sync.Mutex // guards told
	told []int
}

func (a *asker) GiveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, int(time.Since(a.made).Round(time.Second).Seconds()))
}

func (a *asker) want(t *testing.T, what string, told ...int) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.told, told) {
		t.Errorf("%s: told at %v s; want %v", what, a.told, told)
	}
}

var errRefused = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)

// TestDownGrace follows requests in flight at a worker through its falls. Each second of waiting is one of fake time.
func TestDownGrace(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		w := p.workers[0]
		begin := func() (*asker, *Ticket) {
			a := &asker{made: time.Now()}
			return a, p.Begin(w, Dispatch{PromptTokens: 10, Holder: a}, time.Now())
		}
		fall := func() {
			p.Begin(w, Dispatch{}, time.Now()).End(time.Now(), Outcome{Kind: Refused})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		silent, k1 := begin()
		flowing, k2 := begin()
		ended, k3 := begin()
		f.set("w0", errRefused)
		fall()
		time.Sleep(time.Millisecond)
		after, k4 := begin() // as Config.Panic sends them
		k3.End(time.Now(), Outcome{Kind: Answered})
		time.Sleep(10 * time.Second)
		k2.Flow(time.Now())
		time.Sleep(9 * time.Second)
		silent.want(t, "19 s after the fall")
		time.Sleep(3 * time.Second)
		silent.want(t, "without a byte", 20, 21, 22)
		k1.End(time.Now(), Outcome{Kind: Broken})
		time.Sleep(9500 * time.Millisecond)
		silent.want(t, "ended", 20, 21, 22)
		flowing.want(t, "31.5 s after the fall, 21.5 after the last byte", 30, 31)
		ended.want(t, "ended in the grace")
		after.want(t, "sent after the fall")
		k2.End(time.Now(), Outcome{Kind: Broken})
		k4.End(time.Now(), Outcome{Kind: Broken})

		f.set("w0", 200)
		time.Sleep(5 * time.Second)
		back, k5 := begin()
		f.set("w0", errRefused)
		fall()
		time.Sleep(15 * time.Second)
		f.set("w0", 200)
		time.Sleep(30 * time.Second)
		back.want(t, "the worker came back in the grace")
		f.set("w0", errRefused)
		fall()
		time.Sleep(19 * time.Second)
		back.want(t, "19 s after the second fall")
		time.Sleep(time.Second)
		back.want(t, "20 s after the second fall", 65)
		k5.End(time.Now(), Outcome{Kind: Broken})
		if w.flight.oldest != nil || w.flight.newest != nil {
			t.Error("tickets are left in the worker's flight")
		}
	})
}

// TestDownGraceOfARemovedWorker: its health is watched until its last request has ended, and no longer.
func TestDownGraceOfARemovedWorker(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		a := &asker{made: time.Now()}
		k := p.Begin(p.workers[0], Dispatch{Holder: a}, time.Now())
		p.Update([]Spec{{ID: "w1", URL: "http://w1"}})
		time.Sleep(time.Minute)
		a.want(t, "a removed worker that is healthy")
		f.set("w0", errRefused)
		time.Sleep(19 * time.Second)
		a.want(t, "before the grace is over")
		time.Sleep(4 * time.Second)
		a.mu.Lock()
		if len(a.told) == 0 {
			t.Error("not told of a removed worker that went down")
		}
		a.mu.Unlock()
		k.End(time.Now(), Outcome{Kind: Broken})
		synctest.Wait()
		asked := f.count("w0/health")
		time.Sleep(time.Minute)
		if n := f.count("w0/health") - asked; n != 0 {
			t.Errorf("%d health checks of a removed worker after its last request; want 0", n)
		}
		if got := now(p, "tiny"); got != "w1" {
			t.Errorf("the fleet is %s; want w1", got)
		}
	})
}

// TestDownGraceInPanic: with nobody up, Config.Panic takes the health checks for what is wrong, so nobody is given up by them.
func TestDownGraceInPanic(t *testing.T) {
	play(t, 2, func(p *Pool, f *wire) {
		p.Configure(Config{Panic: true, Client: &http.Client{Transport: f}})
		a := &asker{made: time.Now()}
		k := p.Begin(p.workers[0], Dispatch{Holder: a}, time.Now())
		f.set("w0", 503)
		f.set("w1", 503)
		time.Sleep(time.Minute)
		a.want(t, "nobody is up")
		f.set("w1", 200)
		time.Sleep(4 * time.Second)
		a.mu.Lock()
		if len(a.told) == 0 {
			t.Error("not told though another worker is up again")
		}
		a.mu.Unlock()
		k.End(time.Now(), Outcome{Kind: Broken})
	})
}

// TestDescriptorsUsedUp: what keeps this process from asking says nothing of the worker.
func TestDescriptorsUsedUp(t *testing.T) {
	play(t, 1, func(p *Pool, f *wire) {
		f.set("w0", fmt.Errorf("dial: %w", syscall.EMFILE))
		time.Sleep(time.Minute)
		if got := now(p, "tiny"); got != "w0" {
			t.Errorf("after a minute without descriptors: %s; want w0", got)
		}
	})
}

// BenchmarkHealth is one health check, on a connection of its own and on a kept one.
func BenchmarkHealth(b *testing.B) {
	serve := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewServer(serve), httptest.NewTLSServer(serve)
	defer plain.Close()
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())
	for name, url := range map[string]string{"http": plain.URL, "https": secure.URL} {
		p := New(Config{Workers: []Spec{{URL: url}}, TLS: &tls.Config{RootCAs: roots}})
		c := p.conf()
		for how, client := range map[string]*http.Client{"kept": c.Client, "fresh": c.fresh} {
			b.Run(name+"/"+how, func(b *testing.B) {
				for b.Loop() {
					if status, _, err := p.get(b.Context(), client, url+"/health", time.Minute, 1<<10); status != 200 || err != nil {
						b.Fatal(status, err)
					}
				}
			})
		}
	}
}
