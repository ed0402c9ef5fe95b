package worker

import (
	"cmp"

	"github.com/warmpath/warmpath/daemon/fleet/labels"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Spec is one configured worker.
type Spec struct {
	ID         string            // default: the URL's host and port; the first of two workers with one id counts
	URL        string            // base URL, as http://10.0.0.1:8000; user:password in it is sent and never logged
	MetricsURL string            // default: URL + /metrics
	KVTokens   int               // size of the KV cache; 0 = from the worker's metrics
	CPUTokens  int               // KV that its CPU memory keeps, beside the GPU's; 0 = none
	Weight     float64           // default 1
	Cost       float64           // of using it, relative to the others; default 1
	Labels     map[string]string // as the operator gave them

	Role Role // of several in a pool whose prompts have workers of their own

	// DataParallel is the number of data-parallel ranks behind URL; 0 = as many as the worker reports. Each of several is
	// a Worker of its own, with the spec's KVTokens, Weight, Cost and Labels.
	DataParallel int

	// Drain drains the worker from its beginning. An update that changes Drain drains the worker or puts it back, as
	// Pool.Drain does; any other update leaves the state that Pool.Drain set.
	Drain bool

	// Guest keeps all requests from the worker but those of sessions that live there, as a drain does.
	Guest bool
}

// Role is which part of a request a worker may have.
type Role uint8

// The roles.
const (
	Both        Role = iota // prompt and answer
	Prefills                // prompts, whose answers others write
	Decodes                 // answers, and the prompts of its own
	PrefillsToo             // prompts for others, and answers as well

	Roles // their number
)

// PrefillLabel is the label of a worker that Prefills or PrefillsToo, as a Fence has it. Each such worker must have it
// (TestRoles).
const PrefillLabel = roleLabel + "=" + prefillRole

// roleLabel is the name of the label, and prefillRole its value.
const (
	roleLabel   = "role"
	prefillRole = "prefill"
)

// DecodeLabel is that of a worker which the configuration says only decodes.
const DecodeLabel = "role=decode"

// roleBits are the roles in a row.
var roleBits = [...]uint32{Both: 0, Prefills: abi.RowPrefill, Decodes: abi.RowDecode, PrefillsToo: 0}

// marks are the values of a Spec that strategies read in a worker's row. A new one is a field of Spec and a line in
// marks, marksOf and fill.
type marks struct {
	weight float64
	price  float64 // Spec.Cost
	labels uint64  // bits of set
	set    *labels.Set
	named  map[string]string // Spec.Labels, and that of its weights
	role   uint32
}

// marksOf returns the marks of an endpoint, of whose spec zeros mean the defaults.
func marksOf(e *endpoint, set *labels.Set) marks {
	s := &e.spec
	return marks{
		weight: cmp.Or(s.Weight, 1),
		price:  cmp.Or(s.Cost, 1),
		labels: set.Bits(e.labelled),
		set:    set,
		named:  e.labelled,
		role:   roleBits[s.Role],
	}
}

// fill writes the marks into the worker's row.
func (m *marks) fill(r *abi.Row) {
	r.Weight = float32(m.weight)
	r.Price = float32(m.price)
	r.Labels = m.labels
	r.State |= m.role
}

// Union returns all of next, and the specs of before whose ids next does not have.
func Union(next, before []Spec) []Spec {
	stay := map[string]bool{}
	for _, s := range next {
		stay[s.ID] = true
	}
	for _, s := range before {
		if !stay[s.ID] {
			next = append(next, s)
		}
	}
	return next
}
