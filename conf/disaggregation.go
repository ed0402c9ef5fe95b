package conf

import "time"

// Disaggregation has one worker of a pool compute a request's prompt, and another one its answer.
type Disaggregation struct {
	Connector     string  `toml:"connector"`         // nixl | lmcache | mooncake | sglang | sidecar; "" = each does both
	Threshold     int     `toml:"threshold"`         // tokens from which on a prompt may be computed by another worker
	Rule          string  `toml:"rule"`              // which tokens, and what holds from there on: sooner | threshold
	KVRate        float64 `toml:"kv_transfer_rate"`  // tokens a second from a prefiller; 0 = as they are learnt
	Answering     bool    `toml:"prefillers_answer"` // they answer clients too, as far as their prompts let them
	BootstrapPort int     `toml:"bootstrap_port"`    // of the prefillers, for mooncake and sglang

	// What the labels of a prefiller and a decoder must have in common, and what they had better.
	Same []string      `toml:"same"` // names of labels: with another value a prefiller computes nothing for a decoder
	Near string        `toml:"near"` // name of a label; "" = none
	Far  time.Duration `toml:"far"`  // by how much a prefiller with another value there is worse

	// Where further prefillers come from. The service is in addition to that of [pools.kubernetes], whose other keys apply
	// to both.
	PrefillDNS     string `toml:"prefill_dns"`     // name:port, every address of which is a prefiller
	PrefillService string `toml:"prefill_service"` // in Kubernetes, whose pods are prefillers
}

// Mates returns what a prefiller has in common with the workers for which it may compute prompts.
func (d *Disaggregation) Mates(w *Worker) (key string) {
	for _, name := range d.Same {
		key += w.Labels[name] + "\n"
	}
	return key
}

// discovers reports whether prefillers may come from elsewhere than the lists of workers.
func (d *Disaggregation) discovers() bool { return d.PrefillDNS != "" || d.PrefillService != "" }

// FoundRole is the role of a worker if only its address is known and it is not one of the prefillers.
func (d *Disaggregation) FoundRole() string {
	if d.Connector == "sglang" { // each of its servers does one thing, and few do both
		return RoleDecode
	}
	return RoleBoth
}

// On reports whether the pool has roles.
func (d *Disaggregation) On() bool { return d.Connector != "" }

// The rules of which prompts go to a prefiller.
const (
	RuleSooner    = "sooner"    // whose decoder lacks threshold tokens, if that takes fewer seconds of all clients
	RuleThreshold = "threshold" // all that have threshold tokens
)

// The roles of a worker.
const (
	RolePrefill = "prefill" // it computes prompts; no client gets its answer, unless prefillers_answer
	RoleDecode  = "decode"
	RoleBoth    = "both"
)

// RoleLabel is the label of a worker that has one of the two roles.
const RoleLabel = "role"
