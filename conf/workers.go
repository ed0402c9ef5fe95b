package conf

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// workersFile is a file of workers alone.
type workersFile struct {
	Workers []Worker `toml:"workers"`
}

// LoadWorkers reads a pool's workers_file: [[workers]] with the keys, defaults and checks of [[pools.workers]]. Its
// error is a Problems unless the file cannot be read.
//
// A file without the word is an error, so that one which was cut short or is being written does not take all workers
// away. `workers = []` means that there are none now.
func LoadWorkers(path string) ([]Worker, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parseWorkers(data, path)
}

func parseWorkers(data []byte, path string) ([]Worker, error) {
	r := &report{file: path}
	text, tree, err := parseTree(r, data)
	if err != nil {
		return nil, err
	}
	list, written := tree["workers"]
	if !written {
		r.add("workers", "there is no worker",
			`add [[workers]] with url = "http://HOST:PORT", or write workers = [] if there are none now`)
	}
	c := workersFile{Workers: defaultWorkers(list)}
	if !r.schema("", tree, reflect.TypeFor[workersFile]()) {
		return nil, r.err()
	}
	if _, err := toml.Decode(text, &c); err != nil {
		return nil, syntaxProblem(r.file, err)
	}
	for i := range c.Workers {
		c.Workers[i].complete()
	}
	checkWorkers(r, "workers", c.Workers, make(map[string]string))
	checkLabelCount(r, c.Workers, func(i int) string { return child(elem("workers", i), "labels") })
	if err := r.err(); err != nil {
		return nil, err
	}
	return c.Workers, nil
}

// checkSources checks where a pool's workers come from. registers: they may register themselves.
func checkSources(r *report, path string, p *Pool, registers bool) {
	sure := len(p.Workers) > 0 || registers && p.Workers != nil
	if !sure && p.WorkersFile == "" && p.WorkersDNS == "" && !p.Kubernetes.On() {
		r.add(child(path, "workers"), "there is no worker", `add [[pools.workers]] with url = "http://HOST:PORT", or set `+
			"workers_file, workers_dns or kubernetes.service, or write workers = [] and server.admin_token_file if all register")
	}
	all := p.Workers
	listed := len(p.Workers)
	if p.WorkersFile != "" {
		at := child(path, "workers_file")
		if data, err := read(p.WorkersFile, maxFile); err != nil {
			r.add(at, err.Error(), "make it with [[workers]], or with workers = [] if there are none yet")
		} else if filed, err := parseWorkers(data, p.WorkersFile); err != nil {
			inside, _ := errors.AsType[Problems](err)
			r.list = append(r.list, inside...)
		} else {
			all = slices.Concat(all, filed)
		}
	}
	checkLabelCount(r, all, func(i int) string {
		if i >= listed {
			return child(path, "workers_file")
		}
		return child(elem(child(path, "workers"), i), "labels")
	})
	if p.WorkersDNS != "" {
		checkDNSName(r, child(path, "workers_dns"), p.WorkersDNS)
	}
	checkKubernetes(r, child(path, "kubernetes"), &p.Kubernetes)
}

// A row holds a price as a number of 32 bits: less than minCost would be none.
const (
	minCost = 1e-6
	maxCost = 1e6
)

// maxDataParallel bounds the engines behind one address.
const maxDataParallel = 256

// checkWorkers checks the workers at path. urls holds the addresses of those before, to find one that is in two pools.
func checkWorkers(r *report, path string, workers []Worker, urls map[string]string) {
	ids := make(map[string]string)
	for j := range workers {
		w := &workers[j]
		at := elem(path, j)
		r.name(child(at, "id"), w.ID)
		r.unique(ids, w.ID, child(at, "id"), "give each worker of a pool its own id")
		if address, ok := checkWorkerURL(r, child(at, "url"), w.URL); ok {
			r.unique(urls, address, child(at, "url"), "a worker belongs to one pool, once: list all its models there")
			checkMetricsURL(r, child(at, "metrics_url"), w.MetricsURL)
		}
		if w.KVTokens < 0 {
			r.add(child(at, "kv_tokens"), fmt.Sprintf("%d is negative", w.KVTokens),
				"write tokens, or leave it out: it is scraped")
		}
		if w.DataParallel < 0 || w.DataParallel > maxDataParallel {
			r.add(child(at, "data_parallel"), fmt.Sprintf("%d is out of range", w.DataParallel),
				"write --data-parallel-size of the worker, 1 to 256, or leave it out: the worker says it")
		}
		if w.CPUTokens < 0 {
			r.add(child(at, "cpu_kv_tokens"), fmt.Sprintf("%d is negative", w.CPUTokens),
				"write the tokens that its CPU memory keeps, or leave it out: none")
		}
		if !within(w.Weight, math.SmallestNonzeroFloat64, 1000) {
			r.outOfRange(child(at, "weight"), w.Weight, "write a number above 0, up to 1000")
		}
		if !within(w.Cost, minCost, maxCost) {
			r.outOfRange(child(at, "cost"), w.Cost, "write a number above 0, up to 1000000; 1 = as the others")
		}
		checkLabels(r, child(at, "labels"), w.Labels)
		r.oneOf(child(at, "role"), w.Role, RoleBoth, RolePrefill, RoleDecode)
		checkEvents(r, at, w.KVEvents, w.KVEventsReplay)
		checkSource(r, at, w.KVSource)
	}
}

// checkNotSelf reports a worker at the address where clients are served: it would pass for one that is up.
func checkNotSelf(r *report, path string, workers []Worker, listen string) {
	for i := range workers {
		u, err := url.Parse(workers[i].URL)
		if err != nil || u.Port() == "" {
			continue
		}
		if u.Host == listen || loopback(u.Host) && overlap(u.Host, listen) {
			r.add(child(elem(path, i), "url"), fmt.Sprintf("%q is this router: server.listen is %q", u.Host, listen),
				"give the address of the engine")
		}
	}
}

// defaultWorkers returns workers for the file to be decoded over, one for each of the tables in v; nil if the file does
// not have the word.
func defaultWorkers(v any) []Worker {
	if v == nil {
		return nil
	}
	workers := make([]Worker, len(tables(v)))
	for i := range workers {
		workers[i] = DefaultWorker()
	}
	return workers
}

func (w *Worker) complete() {
	w.URL = strings.TrimSuffix(w.URL, "/")
	if w.ID == "" {
		w.ID = DefaultID(w.URL)
	}
	if w.MetricsURL == "" {
		w.MetricsURL = w.URL + "/metrics"
	}
}

func checkDisaggregation(r *report, path string, p *Pool) {
	d := &p.Disaggregation
	at := child(path, "disaggregation")
	if d.On() {
		r.oneOf(child(at, "connector"), d.Connector, "nixl", "lmcache", "mooncake", "sglang", "sidecar")
	}
	r.between(child(at, "threshold"), d.Threshold, 0, maxCount, "tokens, 0 for always,")
	r.between(child(at, "bootstrap_port"), d.BootstrapPort, 1, 65535, "the number of a port,")
	checkPrefillers(r, at, d)
	if d.KVRate != 0 && !within(d.KVRate, 1, 1e9) {
		r.outOfRange(child(at, "kv_transfer_rate"), d.KVRate,
			"write tokens a second, as 400000, or 0: it is learnt")
	}
	if d.Answering && d.Connector == "sglang" {
		r.add(child(at, "prefillers_answer"), "a prefill server of SGLang answers no request of its own",
			"leave it out, or use another connector")
	}
	r.oneOf(child(at, "rule"), d.Rule, RuleSooner, RuleThreshold)
	for i, name := range d.Same {
		checkLabels(r, elem(child(at, "same"), i), map[string]string{name: "x"})
	}
	if d.Near != "" {
		checkLabels(r, child(at, "near"), map[string]string{d.Near: "x"})
	}
	if d.Far < 0 {
		r.add(child(at, "far"), fmt.Sprintf("%s is negative", d.Far), `write a time as "1s"`)
	}
	roles := map[string]int{}
	for i := range p.Workers {
		w := &p.Workers[i]
		roles[w.RoleOf()]++
		if !d.On() && w.Role != RoleBoth && w.Role != "" {
			r.add(child(elem(child(path, "workers"), i), "role"), fmt.Sprintf("%q does nothing here", w.Role),
				"write [pools.disaggregation] with connector, or leave it out: the worker does both")
		}
	}
	if !d.On() || len(p.Workers) == 0 || p.WorkersFile != "" || p.WorkersDNS != "" || p.Kubernetes.On() {
		return // others may come
	}
	switch {
	case roles[RolePrefill] == 0 && !d.discovers():
		r.add(at, "no worker of the pool is a prefiller", `give some of [[pools.workers]] role = "prefill"`)
	case roles[RoleDecode] == 0 && d.Connector == "sglang":
		r.add(at, "no worker of the pool is a decode server of SGLang",
			`give those that were started with --disaggregation-mode decode role = "decode"`)
	case roles[RolePrefill] == len(p.Workers) && !d.Answering:
		r.add(at, "no worker of the pool answers a client: all are prefillers",
			`give some of [[pools.workers]] role = "decode", or leave it out`)
	}
}

// checkPrefillers checks where further prefillers come from.
func checkPrefillers(r *report, at string, d *Disaggregation) {
	if d.PrefillDNS != "" {
		checkDNSName(r, child(at, "prefill_dns"), d.PrefillDNS)
	}
	if s := d.PrefillService; s != "" && !isK8sName(s) {
		r.add(child(at, "prefill_service"), fmt.Sprintf("%.80q is no name of Kubernetes", s),
			"write up to 63 of a-z, 0-9 and dash, without the namespace or a port")
	}
	if !d.On() && d.discovers() {
		r.add(at, "it names prefillers, and no connector", `write connector = "nixl", or leave them out`)
	}
}
