package conf

import "fmt"

// Disaggregation has one worker of a pool compute a request's prompt, and another one its answer.
type Disaggregation struct {
	Connector     string `toml:"connector"`      // nixl | lmcache | mooncake | sglang | sidecar; "" = each does both
	Threshold     int    `toml:"threshold"`      // tokens of the prompt that the decoder lacks; with fewer it is alone
	BootstrapPort int    `toml:"bootstrap_port"` // of the prefillers, for mooncake and sglang
}

// On reports whether the pool has roles.
func (d *Disaggregation) On() bool { return d.Connector != "" }

// The roles of a worker.
const (
	RolePrefill = "prefill" // it computes prompts, and no client gets an answer of its
	RoleDecode  = "decode"
	RoleBoth    = "both"
)

// RoleLabel is the label of a worker that has one of the two roles.
const RoleLabel = "role"

// RoleOf returns the role of a worker: its own, or that of its label.
func (w *Worker) RoleOf() string {
	if label := w.Labels[RoleLabel]; w.Role == RoleBoth && (label == RolePrefill || label == RoleDecode) {
		return label
	}
	return w.Role
}

func checkDisaggregation(r *report, path string, p *Pool) {
	d := &p.Disaggregation
	at := child(path, "disaggregation")
	if d.On() {
		r.oneOf(child(at, "connector"), d.Connector, "nixl", "lmcache", "mooncake", "sglang", "sidecar")
	}
	r.between(child(at, "threshold"), d.Threshold, 0, maxCount, "tokens, 0 for always,")
	r.between(child(at, "bootstrap_port"), d.BootstrapPort, 1, 65535, "the number of a port,")
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
	case roles[RolePrefill] == 0:
		r.add(at, "no worker of the pool is a prefiller", `give some of [[pools.workers]] role = "prefill"`)
	case roles[RolePrefill] == len(p.Workers):
		r.add(at, "no worker of the pool answers a client: all are prefillers",
			`give some of [[pools.workers]] role = "decode", or leave it out`)
	}
}
