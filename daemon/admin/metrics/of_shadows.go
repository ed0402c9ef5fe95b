package metrics

import "github.com/warmpath/warmpath/daemon/admin/strategies"

var ofShadows = []reading[strategies.Report]{
	newReading(metric{name: "shadow_decisions_total", help: "Requests that a shadow decided beside the strategy that " +
		"served, by what it chose: agreed, other, declined, failed, rejected, held.", kind: isCounter,
		labels: []string{"pool", "shadow", "choice"}},
		func(r strategies.Report, send func(float64, ...string)) {
			for _, c := range []struct {
				choice string
				n      uint64
			}{{"agreed", r.Agreed}, {"declined", r.Declined}, {"failed", r.Failed}, {"rejected", r.Rejected}, {"held", r.Holds},
				{"other", r.Seen - r.Agreed - r.Declined - r.Failed - r.Rejected - r.Holds}} {
				send(float64(c.n), c.choice)
			}
		}),
	byStrategy("shadow_held_tokens_total", "Prompt tokens that the chosen worker was believed to hold, of the requests "+
		"for which both chose one.", func(r strategies.Report) (own, live uint64) { return r.Held, r.LiveHeld }, 1),
	byStrategy("shadow_fuel_total", "Fuel used by decisions on the same requests.",
		func(r strategies.Report) (own, live uint64) { return r.Fuel, r.LiveFuel }, 1),
	byStrategy("shadow_seconds_total", "Seconds taken by decisions on the same requests.",
		func(r strategies.Report) (own, live uint64) { return r.Nanos, r.LiveNanos }, 1e9),
}

// byStrategy is a counter of a shadow and of the serving strategy, side by side.
func byStrategy(
	name, help string, of func(strategies.Report) (own, live uint64), per float64,
) reading[strategies.Report] {
	return newReading(metric{name: name, help: help, kind: isCounter, labels: []string{"pool", "shadow", "by"}},
		func(r strategies.Report, send func(float64, ...string)) {
			own, live := of(r)
			send(float64(own)/per, "shadow")
			send(float64(live)/per, "live")
		})
}

// ofShadowQueues has a value for each pool that has shadows.
var ofShadowQueues = []reading[uint64]{
	total("shadow_dropped_total", "Requests that a pool's shadows did not see, since they could not keep up.", poolLabels,
		func(n uint64) float64 { return float64(n) }),
}
