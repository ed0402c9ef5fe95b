package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/daemon/request/limit"
)

// KeyState counts what the clients of one key did since the start of this process, in all pools together.
type KeyState struct {
	Key     string  `json:"key"`              // its name; "" = clients without a key
	Arrived float64 `json:"requests"`         // refused ones too
	Refused float64 `json:"refused"`          // by the router, or since no worker was up or had a free place
	Routed  float64 `json:"estimated_tokens"` // of prompts, as the router estimates them
	Prompt  float64 `json:"prompt_tokens"`    // as the engines count them; streams that ask for no usage are missing
	Cached  float64 `json:"cached_tokens"`    // of these
	Output  float64 `json:"output_tokens"`    // likewise

	Limits []KeyLimit `json:"limits,omitempty"` // those that are set
}

// KeyLimit is a limit of a key.
type KeyLimit struct {
	Limit string  `json:"limit"`   // as in the configuration: tokens_per_minute
	Most  float64 `json:"most"`    // its value
	Used  float64 `json:"used"`    // share of it that is taken now; 1 = the next request is refused
	Over  uint64  `json:"refused"` // requests since the start of this process
}

// keyLimits returns the limits of keys by their names.
func keyLimits(all []limit.Stats) map[string][]KeyLimit {
	of := map[string][]KeyLimit{}
	for i := range all {
		s := &all[i]
		used := usedOf(s)
		for by, most := range LimitsOf(s) {
			if most > 0 {
				of[s.Key] = append(of[s.Key], KeyLimit{Limit: limit.By(by).String(), Most: most, Used: used[by],
					Over: s.Used.Over[by]})
			}
		}
	}
	return of
}

// ofKeys are the counters that /api/v1/keys sums.
var ofKeys = []counter{keyArrivals, keyRefusals, keyPrompts, promptTokens, cachedTokens, outputTokens}

// keyed returns a registry of ofKeys alone, so that reading them does not read all that Prometheus scrapes.
func keyed(v *vectors) *prometheus.Registry {
	r := prometheus.NewRegistry()
	for _, c := range ofKeys {
		r.MustRegister(v.counters[c])
	}
	return r
}

// Keys returns the counts of each key, over all pools and models.
func (m *Metrics) Keys(limits []limit.Stats) ([]KeyState, error) {
	families, err := m.byKey.Gather()
	of := keyLimits(limits)
	sums := map[string]map[string]float64{} // by key and name of the metric
	for _, f := range families {
		for _, s := range f.Metric {
			for _, l := range s.Label {
				if l.GetName() != "key" {
					continue
				}
				if sums[l.GetValue()] == nil {
					sums[l.GetValue()] = map[string]float64{}
				}
				sums[l.GetValue()][f.GetName()] += s.Counter.GetValue()
			}
		}
	}
	all := []KeyState{}
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		sum := func(c counter) float64 { return sums[key][counters[c].name] }
		all = append(all, KeyState{Key: key, Arrived: sum(keyArrivals), Refused: sum(keyRefusals), Routed: sum(keyPrompts),
			Prompt: sum(promptTokens), Cached: sum(cachedTokens), Output: sum(outputTokens), Limits: of[key]})
	}
	return all, err
}
