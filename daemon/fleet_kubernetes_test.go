package daemon

import (
	"fmt"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/kubetest"
)

// TestFleetFollowsKubernetes runs a daemon on a service: a terminating pod gets nothing new from the moment that its slice
// says so, ends what it has, and leaves with its endpoint.
func TestFleetFollowsKubernetes(t *testing.T) {
	held, release := make(chan bool, 1), make(chan bool)
	k := kubetest.Start(t)
	list := func(name string, port int, terminating bool) {
		k.Set("vllm", "slice-"+name, port, kubetest.Pod{Name: name, Address: "127.0.0.1", Ready: !terminating,
			Terminating: terminating})
	}
	ports := map[string]int{}
	for _, name := range []string{"pod-a", "pod-b"} {
		s := httptest.NewServer(fakeWorker(t, releasing(name, held, release)).Config.Handler)
		t.Cleanup(s.Close)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		ports[name], _ = strconv.Atoi(port)
	}
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let) // before the workers close
	list("pod-a", ports["pod-a"], false)
	r := start(t, fromDefaults(fmt.Sprintf("kubernetes = {service = \"vllm\", api = %q, account = %q}", k.URL, k.Account)), 1)
	ask := func(header ...string) seen { return r.do("POST", "/v1/completions", aCompletion, header...) }
	if s := ask(); !strings.Contains(s.body, "pod-a") {
		t.Fatalf("%d %s", s.status, s.body)
	}
	done := make(chan seen, 1)
	go func() { done <- ask("X-Hold", "1") }()
	<-held
	list("pod-b", ports["pod-b"], false)
	eventually(t, "the new pod is up", func() bool {
		w := r.describe()[0].Workers
		return len(w) == 2 && w[0].State == "up" && w[1].State == "up"
	})
	list("pod-a", ports["pod-a"], true)
	eventually(t, "the pod that goes drains", func() bool {
		for _, w := range r.describe()[0].Workers {
			if w.ID == "pod-a" {
				return w.State == "draining"
			}
		}
		return false
	})
	for range 10 {
		if s := ask(); s.status != 200 || !strings.Contains(s.body, "pod-b") {
			t.Errorf("%d %s; want the pod that stays", s.status, s.body)
		}
	}
	let()
	if s := <-done; s.status != 200 || !strings.Contains(s.body, "pod-a") {
		t.Errorf("in flight at the pod that goes: %d %v %s", s.status, s.err, s.body)
	}
	k.Set("vllm", "slice-pod-a", ports["pod-a"])
	eventually(t, "it is gone", func() bool { return len(r.describe()[0].Workers) == 1 })
}
