package metrics

import "github.com/warmpath/warmpath/daemon/request/limit"

// ofLimit are the labels of the counters for a key's limits, with each limit's name in the configuration.
var ofLimit = []string{"key", "limit"}

// ofLimits has no values for keys without limits.
var ofLimits = []reading[limit.Stats]{
	newReading(metric{name: "key_limit", help: "Limits of a client's key: max_in_flight, requests_per_minute and " +
		"tokens_per_minute, those that are set.", kind: isGauge, labels: ofLimit},
		func(s limit.Stats, send func(float64, ...string)) {
			for by, n := range LimitsOf(&s) {
				if n > 0 {
					send(n, limit.By(by).String())
				}
			}
		}),
	newReading(metric{name: "key_used_ratio", help: "Share of a key's limit that is taken now: of its requests in " +
		"flight, and of its requests and tokens in the last 60 s. 1 = the next request is refused.", kind: isGauge,
		labels: ofLimit},
		func(s limit.Stats, send func(float64, ...string)) {
			for by, used := range usedOf(&s) {
				if used >= 0 {
					send(used, limit.By(by).String())
				}
			}
		}),
	newReading(metric{name: "key_used_total", help: "What a key with limits has used: requests that a worker got, and " +
		"tokens as they count for its limit, by the engines' usage.", kind: isCounter, labels: ofLimit},
		func(s limit.Stats, send func(float64, ...string)) {
			send(float64(s.Used.Requests), limit.ByRequests.String())
			send(s.Used.Tokens, limit.ByTokens.String())
		}),
	newReading(metric{name: "key_over_limit_total", help: "Requests of a key that were refused, by the limit that was " +
		"reached.", kind: isCounter, labels: ofLimit},
		func(s limit.Stats, send func(float64, ...string)) {
			for by, n := range s.Used.Over {
				send(float64(n), limit.By(by).String())
			}
		}),
}

// LimitsOf returns the limits of a key; 0 = it is not set.
func LimitsOf(s *limit.Stats) [limit.Count]float64 {
	return [...]float64{limit.ByInFlight: float64(s.Limits.InFlight), limit.ByRequests: float64(s.Limits.Requests),
		limit.ByTokens: float64(s.Limits.Tokens)}
}

// usedOf returns the share of each limit that is taken; below 0 = it is not set.
func usedOf(s *limit.Stats) (used [limit.Count]float64) {
	left := [...]float64{limit.ByInFlight: float64(s.Limits.InFlight - s.InFlight),
		limit.ByRequests: float64(s.Requests.Remaining), limit.ByTokens: float64(s.Tokens.Remaining)}
	for by, n := range LimitsOf(s) {
		used[by] = -1
		if n > 0 {
			used[by] = 1 - left[by]/n
		}
	}
	return used
}
