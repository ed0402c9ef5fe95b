package endpoints_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/warmpath/warmpath/daemon/fleet/discover/endpoints"
	"github.com/warmpath/warmpath/daemon/lab/kubetest"
	"github.com/warmpath/warmpath/daemon/lab/logtest"
)

// follower is a source that runs, and its API server.
type follower struct {
	*kubetest.Server
	t      *testing.T
	source *Source
	log    *logtest.Log
}

func service(k *kubetest.Server) Service {
	return Service{Name: "vllm", Port: "http", API: k.URL, Account: k.Account}
}

func follow(t *testing.T, k *kubetest.Server) *follower {
	f := &follower{Server: k, t: t, log: &logtest.Log{}}
	f.source = New(slog.New(slog.NewTextHandler(f.log, nil)))
	f.source.Follow(t.Context(), service(k))
	var running sync.WaitGroup
	running.Go(func() { f.source.Run(t.Context(), func() {}) })
	t.Cleanup(running.Wait) // t.Context ends before
	return f
}

func (f *follower) eventually(what string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("never: %s; workers: %s; log:\n%s", what, f.workers(), f.log)
		}
	}
}

func (f *follower) workers() string {
	var words []string
	for _, w := range f.source.Workers() {
		word := strings.TrimPrefix(w.URL, "http://10.0.0.") + "=" + w.Pod
		if w.Leaving {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (f *follower) expect(want string) {
	f.t.Helper()
	f.eventually(want, func() bool { return f.workers() == want })
}

// watched waits for one more watch than there were.
func (f *follower) watched(than int) {
	f.t.Helper()
	f.eventually("a new watch", func() bool { _, n := f.Asked(); return n > than })
}

func pod(name, address string) kubetest.Pod {
	return kubetest.Pod{Name: name, Address: address, Ready: true}
}

func TestFollowsAService(t *testing.T) {
	k := kubetest.Start(t)
	k.Set("vllm", "vllm-1", 8000, pod("a", "10.0.0.1"))
	k.Set("vllm", "vllm-2", 8000, pod("b", "10.0.0.2")) // the second page
	k.Set("other", "other-1", 8000, pod("x", "10.0.0.9"))
	f := follow(t, k)
	if got := f.workers(); got != "1:8000=a 2:8000=b" {
		t.Fatalf("after Follow: %q", got)
	}
	k.Set("vllm", "vllm-1", 8000, pod("a", "10.0.0.1"), pod("c", "10.0.0.3"))
	f.expect("1:8000=a 2:8000=b 3:8000=c")
	k.Set("vllm", "vllm-1", 8000, kubetest.Pod{Name: "a", Address: "10.0.0.1", Terminating: true}, pod("c", "10.0.0.3"))
	f.expect("1:8000=a! 2:8000=b 3:8000=c")
	k.Set("vllm", "vllm-1", 8000, pod("c", "10.0.0.3"))
	f.expect("2:8000=b 3:8000=c")
	k.Set("vllm", "vllm-2", 8000)
	f.expect("3:8000=c")
	k.Set("vllm", "vllm-1", 8000, kubetest.Pod{Name: "c", Address: "10.0.0.3"})
	f.expect("3:8000=c!")
	f.eventually("a word that nobody can serve", func() bool { return f.log.Count("no ready pod") == 1 })
	if lists, _ := k.Asked(); lists != 2 {
		t.Errorf("%d parts of lists; want the 2 of one list, and a watch from there", lists)
	}
	other := service(k)
	other.Name = "other"
	f.source.Follow(t.Context(), other)
	if got := f.workers(); got != "9:8000=x" {
		t.Errorf("another service: %q", got)
	}
	k.Set("other", "other-1", 8000, pod("y", "10.0.0.8"))
	f.expect("8:8000=y")
	f.source.Follow(t.Context(), Service{})
	f.expect("")
}

// A watch that was cut goes on from the last version, bookmarks included: no new list.
func TestGoesOnAfterACut(t *testing.T) {
	k := kubetest.Start(t)
	k.Set("vllm", "s", 8000, pod("a", "10.0.0.1"))
	f := follow(t, k)
	f.watched(0)
	_, before := k.Asked()
	k.Set("vllm", "s", 8000, pod("b", "10.0.0.2"))
	f.expect("2:8000=b")
	k.Bookmark()
	k.Break()
	k.Set("vllm", "s", 8000, pod("c", "10.0.0.3"))
	f.watched(before)
	f.expect("3:8000=c")
	if lists, _ := k.Asked(); lists != 1 {
		t.Errorf("%d lists; want 1", lists)
	}
	if n := f.log.Count("level=WARN"); n != 0 {
		t.Errorf("%d warnings for a cut that nobody felt", n)
	}
}

func TestListsAgainWhenGone(t *testing.T) {
	k := kubetest.Start(t)
	k.Set("vllm", "s", 8000, pod("a", "10.0.0.1"))
	f := follow(t, k)
	f.watched(0)
	k.Set("vllm", "s", 8000, pod("b", "10.0.0.2"))
	f.expect("2:8000=b")
	// 1. As the status of a watch.
	k.Set("vllm", "s", 8000) // deleted, and then forgotten while nobody watches
	k.Compact()
	k.Break()
	f.expect("")
	// 2. As an event.
	k.Set("vllm", "s", 8000, pod("d", "10.0.0.4"))
	f.expect("4:8000=d")
	was, _ := k.Asked()
	k.Fail(http.StatusGone)
	f.eventually("a new list", func() bool { n, _ := k.Asked(); return n > was })
	f.expect("4:8000=d")
	if n := f.log.Count("does not list"); n != 0 {
		t.Errorf("410 counts as an outage: %s", f.log)
	}
}

func TestOutageTakesNobodyAway(t *testing.T) {
	for name, begin := range map[string]func(k *kubetest.Server, on bool){
		"refused": func(k *kubetest.Server, on bool) { k.Refuse(map[bool]int{true: http.StatusForbidden}[on]) },
		"ill":     func(k *kubetest.Server, on bool) { k.Refuse(map[bool]int{true: http.StatusServiceUnavailable}[on]) },
		"token": func(k *kubetest.Server, on bool) {
			k.Rotate(map[bool]string{true: "second", false: "first"}[on])
		},
		"silent": func(k *kubetest.Server, on bool) { k.Silence(on) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kubetest.Start(t)
			k.Set("vllm", "s", 8000, pod("a", "10.0.0.1"))
			f := follow(t, k)
			f.watched(0)
			begin(k, true)
			k.Break()
			f.eventually("a warning", func() bool { return f.log.Count("those it gave before stay") == 1 })
			_, tries := k.Asked()
			f.watched(tries)
			if got := f.workers(); got != "1:8000=a" {
				t.Errorf("workers: %q; want those before", got)
			}
			begin(k, false)
			k.Break()
			k.Set("vllm", "s", 8000, pod("b", "10.0.0.2"))
			f.expect("2:8000=b")
			f.eventually("a word of the end", func() bool { return f.log.Count("Kubernetes answers again") == 1 })
			if n := f.log.Count("those it gave before stay"); n != 1 {
				t.Errorf("%d warnings of one outage", n)
			}
		})
	}
}

// kubelet replaces the token, and the old one ends some time later.
func TestTakesUpANewToken(t *testing.T) {
	k := kubetest.Start(t)
	k.Set("vllm", "s", 8000, pod("a", "10.0.0.1"))
	f := follow(t, k)
	f.watched(0)
	k.WriteAccount("token", "second")
	k.Rotate("second")
	k.Break()
	k.Set("vllm", "s", 8000, pod("b", "10.0.0.2"))
	f.expect("2:8000=b")
	if n := f.log.Count("level=WARN"); n != 0 {
		t.Errorf("%d warnings", n)
	}
}

// What is not there at the start is found when it comes.
func TestStartsWithoutAServer(t *testing.T) {
	k := kubetest.Start(t)
	k.Refuse(http.StatusServiceUnavailable)
	f := follow(t, k)
	f.expect("")
	f.eventually("a warning", func() bool { return f.log.Count("those it gave before stay") == 1 })
	k.Refuse(0)
	f.eventually("a warning of none", func() bool { return f.log.Count("no ready pod") == 1 })
	k.Set("vllm", "s", 8000, pod("a", "10.0.0.1"))
	f.expect("1:8000=a")
}

func TestRefusalsNameTheRemedy(t *testing.T) {
	f := func(change func(k *kubetest.Server, s *Service), want string) {
		t.Helper()
		k := kubetest.Start(t)
		s := service(k)
		change(k, &s)
		log := &logtest.Log{}
		New(slog.New(slog.NewTextHandler(log, nil))).Follow(t.Context(), s)
		if log.Count(want) == 0 {
			t.Errorf("no %q in %s", want, log)
		}
	}
	f(func(k *kubetest.Server, s *Service) { k.Refuse(403) }, "give the service account get, list and watch on endpointslices")
	f(func(k *kubetest.Server, s *Service) { k.Rotate("other") }, "the token of the account is not accepted")
	f(func(k *kubetest.Server, s *Service) { s.Namespace = "elsewhere" }, "is api the address of a Kubernetes API server")
	f(func(k *kubetest.Server, s *Service) { k.WriteAccount("ca.crt", "none") }, "no certificate in PEM")
	f(func(k *kubetest.Server, s *Service) { k.WriteAccount("namespace", "") }, "set namespace")
	f(func(k *kubetest.Server, s *Service) { s.API = "" }, "this is no pod of a cluster")
	f(func(k *kubetest.Server, s *Service) { s.Account = t.TempDir(); s.Namespace = "prod" }, "certificate signed by unknown authority")
}
