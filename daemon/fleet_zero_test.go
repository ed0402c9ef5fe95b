package daemon

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/kubetest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// hurried is how much faster than in a cluster the kubelet and the scaler of the test are.
const hurried = 10

// endpoints are a Service: the routers that their readiness probe finds ready.
type endpoints struct {
	routers []*running
	ready   []atomic.Bool
	left    atomic.Int32 // how often a router left
	next    atomic.Int32
}

// probe does what a kubelet does for the router of this number, with the numbers of the readiness probe in the manifest.
func (g *endpoints) probe(t *testing.T, n int, end <-chan struct{}) {
	deployment, err := os.ReadFile(filepath.Join(deployed, "kubernetes", "deployment.yaml"))
	if err != nil {
		t.Error(err)
		return
	}
	at := regexp.MustCompile(`readinessProbe:.*\n\s+httpGet:\n\s+path: (\S+)\n\s+port: http\n\s+periodSeconds: (\d+)\n` +
		`\s+timeoutSeconds: (\d+)\n\s+failureThreshold: (\d+)`).FindStringSubmatch(string(deployment))
	if at == nil {
		t.Error("the manifest has no readiness probe")
		return
	}
	period, _ := strconv.Atoi(at[2])
	timeout, _ := strconv.Atoi(at[3])
	threshold, _ := strconv.Atoi(at[4])
	kubelet := &http.Client{Timeout: time.Duration(timeout) * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for failed := 0; ; {
		resp, err := kubelet.Get("http://" + g.routers[n].Addr() + at[1])
		if err == nil {
			resp.Body.Close()
		}
		if err == nil && resp.StatusCode < 400 {
			failed = 0
			g.ready[n].Store(true)
		} else if failed++; failed >= threshold && g.ready[n].Swap(false) {
			g.left.Add(1)
		}
		select {
		case <-end:
			return
		case <-time.After(time.Duration(period) * time.Second / hurried):
		}
	}
}

// ServeHTTP sends a connection to the next router that is ready; without one it is refused.
func (g *endpoints) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first := int(g.next.Add(1))
	for i := range g.routers {
		if n := (first + i) % len(g.routers); g.ready[n].Load() {
			to := &url.URL{Scheme: "http", Host: g.routers[n].Addr()}
			httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
			return
		}
	}
	http.Error(w, "no endpoint is ready", http.StatusBadGateway)
}

// TestFromZeroBehindTheManifests: two routers behind a Service, as deploy/kubernetes has them, whose workers rest at zero.
// The probe of the manifest keeps both in the Service, requests are held, the query of deploy/keda asks for a worker, and
// all of them are answered by the pod that a scaler starts then. No alert of deploy/prometheus fires.
func TestFromZeroBehindTheManifests(t *testing.T) {
	t.Parallel()
	k := kubetest.Start(t)
	toml := strings.Replace(fromDefaults(fmt.Sprintf("queue.wait_empty = \"60s\"\nmodels = [\"sim\"]\n"+
		"kubernetes = {service = \"vllm\", api = %q, account = %q}", k.URL, k.Account)), "roundrobin", "prefixaware", 1)
	g := &endpoints{ready: make([]atomic.Bool, 2)}
	var scrapes []string
	for range 2 {
		r := start(t, toml, 0)
		g.routers = append(g.routers, r)
		scrapes = append(scrapes, r.AdminAddr())
	}
	var background sync.WaitGroup
	end := make(chan struct{})
	t.Cleanup(func() { close(end); background.Wait() })
	for n := range g.routers {
		background.Go(func() { g.probe(t, n, end) })
	}
	service := httptest.NewServer(g)
	t.Cleanup(service.Close)
	object, err := os.ReadFile(filepath.Join(deployed, "keda", "scaledobject.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	query := string(regexp.MustCompile(`(?m)^ +query: (.*)$`).FindSubmatch(object)[1])
	p := startPrometheus(t, scrapes...)
	patiently(t, "both routers are in the Service, and the scaler wants no worker", func() bool {
		got, wrong := p.values(query)
		return wrong == "" && len(got) == 1 && got[0] == 0 && g.ready[0].Load() && g.ready[1].Load()
	})
	const n = 60
	answers := make(chan seen, n)
	for range n {
		go func() { answers <- do(t, "POST", service.URL+"/v1/completions", hello) }()
	}
	patiently(t, "all are held", func() bool { return g.routers[0].waiting()+g.routers[1].waiting() == n })
	if g.routers[0].waiting() == 0 || g.routers[1].waiting() == 0 {
		t.Error("one router of two holds all")
	}
	patiently(t, "the scaler wants a worker", func() bool {
		got, wrong := p.values(query)
		return wrong == "" && len(got) == 1 && got[0] >= 1
	})
	pod := sims(t, 1, vllmsim.Config{Models: []string{"sim"}, Speed: 20})[0]
	at, _ := url.Parse(pod.URL())
	port, _ := strconv.Atoi(at.Port())
	set := func(ready bool) {
		k.Set("vllm", "slice", port, kubetest.Pod{Name: "vllm-0", Address: at.Hostname(), Ready: ready})
	}
	set(false) // it loads its model
	time.Sleep(3 * time.Second)
	if len(answers) > 0 {
		t.Errorf("%d are answered before the worker is ready: %+v", len(answers), <-answers)
	}
	set(true)
	allGood(t, n, answers)
	time.Sleep(2 * time.Second) // Prometheus looks once more
	var stirred struct {
		Result []struct{ Metric map[string]string }
	}
	wrong := p.get("/api/v1/query?query="+url.QueryEscape("count_over_time(ALERTS[10m])"), &stirred)
	for _, a := range stirred.Result {
		// These have not fired: the first is over with the first worker, and the others with that one's first health check.
		begins := slices.Contains([]string{"WarmpathQueueFilling", "WarmpathPoolEmpty", "WarmpathWorkerDown"}, a.Metric["alertname"])
		if !begins || a.Metric["alertstate"] != "pending" {
			t.Errorf("an alert: %v", a.Metric)
		}
	}
	if wrong != "" || len(p.stirring()) > 0 {
		t.Errorf("in the end: %v %s", p.stirring(), wrong)
	}
	if left := g.left.Load(); left > 0 {
		t.Errorf("routers left the Service %d times", left)
	}
}
