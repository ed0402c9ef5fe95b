package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/cache/parts/goredis"
	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/transport/direct"
)

// probeTimeout bounds each request to a worker.
const probeTimeout = 5 * time.Second

// maxProbed bounds the bytes read of a worker's answer: its metrics have some 200 KB.
const maxProbed = 16 << 20

// probeFinding is the result of one worker's probe.
type probeFinding struct {
	Pool   string   `json:"pool"`
	Worker string   `json:"worker"`
	URL    string   `json:"url"`
	Good   []string `json:"good"`
	Wrong  []string `json:"wrong"` // what will not work, with the remedy
}

// prober sends the workers of one pool the daemon's own requests.
type prober struct {
	pool   *conf.Pool
	key    string
	client *http.Client
	ca     *tls.Config
}

// probeWorkers probes every worker of the file, of workers_file and of workers_dns. The notes say what it cannot ask.
func probeWorkers(ctx context.Context, c *conf.Config) (all []probeFinding, notes []string) {
	for i := range c.Pools {
		p := &c.Pools[i]
		x, err := newProber(p)
		if err != nil {
			all = append(all, poolFinding(p, "%v", err))
			continue
		}
		workers := p.Workers
		if p.WorkersFile != "" {
			more, err := conf.LoadWorkers(p.WorkersFile)
			if err != nil {
				all = append(all, poolFinding(p, "workers_file: %v", err))
			}
			workers = append(workers[:len(workers):len(workers)], more...)
		}
		for key, name := range map[string]string{"workers_dns": p.WorkersDNS, "prefill_dns": p.Disaggregation.PrefillDNS} {
			if name == "" {
				continue
			}
			more, err := resolved(ctx, name)
			if err != nil {
				all = append(all, poolFinding(p, "%s does not resolve here: %v", key, err))
			}
			for k := range more {
				more[k].Role = p.Disaggregation.FoundRole()
				if key == "prefill_dns" {
					more[k].Role = conf.RolePrefill
				}
			}
			workers = append(workers[:len(workers):len(workers)], more...)
		}
		if p.Kubernetes.On() || p.Disaggregation.PrefillService != "" {
			notes = append(notes, fmt.Sprintf("pool %s: pods that Kubernetes lists are not asked from here; "+
				"where the router runs, `warmpath status` shows them", p.Name))
		}
		first := len(all)
		for k := range workers {
			all = append(all, x.probe(ctx, &workers[k]))
		}
		x.probePairs(ctx, workers, all[first:])
	}
	return all, notes
}

// poolFinding is a problem of a pool that belongs to none of its workers.
func poolFinding(p *conf.Pool, format string, args ...any) probeFinding {
	return probeFinding{Pool: p.Name, Good: []string{}, Wrong: []string{fmt.Sprintf(format, args...)}}
}

// resolved returns the workers behind a DNS name.
func resolved(ctx context.Context, name string) (all []conf.Worker, err error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	for _, ip := range ips {
		all = append(all, conf.WorkerAt("http://"+net.JoinHostPort(ip, port)))
	}
	return all, err
}

func newProber(p *conf.Pool) (*prober, error) {
	x := &prober{pool: p}
	var err error
	x.key, err = p.WorkerKey()
	if err != nil {
		return nil, err
	}
	if p.TLSCAFile != "" {
		pem, err := os.ReadFile(p.TLSCAFile)
		if err != nil {
			return nil, err
		}
		x.ca = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		x.ca.RootCAs.AppendCertsFromPEM(pem)
	}
	x.client = direct.Client(&http.Transport{TLSClientConfig: x.ca, DisableKeepAlives: true}, probeTimeout)
	return x, nil
}

// probe reads one worker's health, models, metrics and events.
func (x *prober) probe(ctx context.Context, w *conf.Worker) probeFinding {
	f := probeFinding{Pool: x.pool.Name, Worker: w.ID, URL: w.URL, Good: []string{}, Wrong: []string{}}
	good := func(format string, args ...any) { f.Good = append(f.Good, fmt.Sprintf(format, args...)) }
	wrong := func(format string, args ...any) { f.Wrong = append(f.Wrong, fmt.Sprintf(format, args...)) }
	if _, err := x.ask(ctx, w.URL+"/health"); err != nil {
		wrong("/health: %v: it gets no requests; %s", err, guess(err))
		return f
	}
	good("/health")
	if models, err := x.models(ctx, w); err != nil {
		wrong("/v1/models: %v: any model is sent there; a key that vLLM asks for goes into worker_key_file", err)
	} else if fit := x.fitting(models); len(fit) == 0 {
		wrong("it serves %q, and the pool is for %q: its requests are refused; correct models, or vLLM's --served-model-name",
			models, x.pool.Models)
	} else {
		good("models %s", strings.Join(fit, ", "))
	}
	if text, err := x.ask(ctx, w.MetricsURL); err != nil {
		wrong("/metrics: %v: queue, KV usage and cache size stay unknown; set metrics_url, kv_tokens", err)
	} else if !bytes.Contains(text, []byte("\nvllm:")) && !bytes.HasPrefix(text, []byte("vllm:")) {
		wrong("/metrics: no line of vllm:...: queue, KV usage and cache size stay unknown; is metrics_url vLLM's?")
	} else {
		good("/metrics")
		if w.KVTokens == 0 && !bytes.Contains(text, []byte("num_gpu_blocks")) {
			wrong("/metrics says no num_gpu_blocks: its cache size is a guess; set kv_tokens")
		}
	}
	x.probeEvents(ctx, w, good, wrong)
	return f
}

// probeEvents checks the address where the worker publishes KV events, and whether a publisher answers there.
func (x *prober) probeEvents(ctx context.Context, w *conf.Worker, good, wrong func(string, ...any)) {
	at := w.KVEvents
	if at == "" {
		at = x.pool.KVEvents
	}
	switch {
	case at == "":
		if x.pool.Strategy.Orders() == "kvaware" {
			wrong("no kv_events is set: kvaware routes by history alone; kv_events = \"auto\"")
		}
		return
	case at == "auto":
		text, err := x.ask(ctx, w.URL+"/kv_event_sources")
		if err != nil {
			wrong("KV events: it does not say where it publishes (%v): vLLM before 0.31, or without --kv-events-config; "+
				"set kv_events = \"tcp://*:5557\"", err)
			return
		}
		good("KV events: it says where: %s", places(text))
		return
	case !strings.HasPrefix(at, "tcp://"):
		return // ipc: the daemon's own user must reach it
	}
	u, err := url.Parse(w.URL)
	if err != nil {
		wrong("KV events: %v", err)
		return
	}
	address := strings.Replace(strings.TrimPrefix(at, "tcp://"), "*", u.Hostname(), 1)
	if err := greeted(ctx, address); err != nil {
		wrong("KV events at %s: %v: it is routed by history; is vLLM's --kv-events-config on, and the port open?", address,
			err)
		return
	}
	good("KV events at %s", address)
}

// guess returns the likely cause of a failed health check, and what to do.
func guess(err error) string {
	var unknown x509.UnknownAuthorityError
	switch text := err.Error(); {
	case errors.As(err, &unknown):
		return "set tls_ca_file of the pool to the authority that signed the worker's certificate"
	case strings.Contains(text, "HTTP response to HTTPS client"):
		return "the worker has no TLS: begin its url with http://"
	case strings.Contains(text, "HTTP 400") || strings.Contains(text, "malformed HTTP response"):
		return "does it speak TLS? Then begin its url with https://"
	case strings.Contains(text, "HTTP 401") || strings.Contains(text, "HTTP 403"):
		return "does a proxy before it ask for a key?"
	}
	return "is vLLM there, at this address and port?"
}

// places lists the addresses of the KV events of each rank that /kv_event_sources names.
func places(text []byte) string {
	var ranks map[string]struct{ Endpoint string }
	if err := json.Unmarshal(text, &ranks); err != nil || len(ranks) == 0 {
		return "but names no rank"
	}
	var all []string
	for _, rank := range slices.Sorted(maps.Keys(ranks)) {
		all = append(all, ranks[rank].Endpoint)
	}
	return some(all)
}

// greeted returns an error unless a ZeroMQ socket answers: its greeting begins with ff, eight bytes and 7f.
// https://rfc.zeromq.org/spec/23, "signature".
func greeted(ctx context.Context, address string) error {
	c, err := (&net.Dialer{Timeout: probeTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(probeTimeout))
	if _, err := c.Write([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f}); err != nil {
		return err
	}
	var signature [10]byte
	if _, err := io.ReadFull(c, signature[:]); err != nil {
		return errors.New("nothing there speaks ZeroMQ")
	}
	if signature[0] != 0xff || signature[9]&1 != 1 {
		return errors.New("what is there does not speak ZeroMQ")
	}
	return nil
}

// ask reads a page of the worker.
func (x *prober) ask(ctx context.Context, at string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	return x.do(req)
}

// models returns the model names that the worker lists.
func (x *prober) models(ctx context.Context, w *conf.Worker) ([]string, error) {
	text, err := x.ask(ctx, w.URL+"/v1/models")
	if err != nil {
		return nil, err
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, errors.New("the answer is no list of models")
	}
	var names []string
	for _, m := range list.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// fitting returns the names that the pool serves.
func (x *prober) fitting(models []string) (fit []string) {
	for _, m := range models {
		if x.pool.Serves(m) {
			fit = append(fit, m)
		}
	}
	return fit
}

// writeProbe prints the findings, and returns how many things will not work.
func writeProbe(out io.Writer, all []probeFinding, notes []string) (wrong int) {
	for _, n := range notes {
		fmt.Fprintln(out, "note:", n)
	}
	for i := range all {
		f := &all[i]
		state := "ok   "
		if len(f.Wrong) > 0 {
			state = "WRONG"
		}
		fmt.Fprintf(out, "%s %s %s  %s\n", state, f.Pool, f.Worker, strings.Join(f.Good, "; "))
		for _, w := range f.Wrong {
			fmt.Fprintf(out, "      %s\n", w)
		}
		wrong += len(f.Wrong)
	}
	return wrong
}

// probeRedis checks that the Redis servers of the file accept the commands that the router needs.
func probeRedis(ctx context.Context, c *conf.Config) (all []probeFinding) {
	f := func(table string, read func() (string, error), files conf.RedisFiles, needs tier.Needs) {
		url, err := read()
		if err == nil && url == "" {
			return
		}
		found := probeFinding{Pool: "[" + table + "]", Worker: "redis", Good: []string{}, Wrong: []string{}}
		secured, bad := goredis.TLS(files.Table, files.CA, files.Cert, files.Key)
		switch {
		case err != nil:
		case bad != nil:
			err = bad
		default:
			err = tier.Check(ctx, url, secured, needs)
		}
		if err != nil {
			found.Wrong = append(found.Wrong, err.Error())
		} else {
			found.Good = append(found.Good, "it takes what a router sends")
		}
		all = append(all, found)
	}
	f("cache", c.Cache.RedisURL, c.Cache.Security(), tier.NeedsOfStore)
	shared := func() (string, error) { return c.History.RedisURL(&c.Cache) }
	f("history", shared, c.History.Security(&c.Cache), tier.NeedsOfHistory)
	if l2 := &c.KVCache.L2; l2.Enabled && l2.Backend == conf.BackendRedis {
		f("kv_cache.l2", l2.RedisURL, conf.RedisFiles{Table: "kv_cache.l2", CA: l2.TLSCAFile, Cert: l2.TLSCertFile,
			Key: l2.TLSKeyFile}, tier.Needs{Prefix: l2.Prefix + "check"})
	}
	return all
}

// probeAll probes the workers of a configuration, prints the findings, and returns an error that counts what will not
// work.
func probeAll(ctx context.Context, out io.Writer, file string, asJSON bool) error {
	c, err := conf.Load(file)
	if err != nil {
		return err
	}
	all, notes := probeWorkers(ctx, c)
	all = append(all, probeRedis(ctx, c)...)
	to := out
	if asJSON {
		to = io.Discard
	}
	wrong := writeProbe(to, all, notes)
	if asJSON {
		page := map[string]any{"ok": wrong == 0, "workers": all, "notes": notes}
		if err := json.NewEncoder(out).Encode(page); err != nil {
			return err
		}
	}
	if wrong > 0 {
		what := "what is marked WRONG will not work"
		if wrong > 1 {
			what = fmt.Sprintf("%d things will not work", wrong)
		}
		return fmt.Errorf("%s: %s", file, what)
	}
	return nil
}
