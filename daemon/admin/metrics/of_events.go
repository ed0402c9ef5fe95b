package metrics

import (
	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
)

var ofEvents = []reading[feed.Stats]{
	gauge("kv_events_live", "1 while the strategy goes by the worker's KV events.", workerLabels,
		func(e feed.Stats) float64 { return bit(e.Live) }),
	newReading(metric{name: "kv_events_state", help: "1 for the state of the worker's KV events, of never connected, " +
		"replaying, live, partial, behind, gap and connection lost.", kind: isGauge,
		labels: []string{"pool", "worker", "state"}},
		func(e feed.Stats, send func(float64, ...string)) {
			for s := kvevents.Never; s <= kvevents.Lost; s++ {
				send(bit(s == e.State), s.String())
			}
		}),
	total("kv_events_total", "KV events of the worker.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Events) }),
	total("kv_event_batches_total", "Batches of KV events of the worker that were applied.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Batches) }),
	total("kv_event_gaps_total", "Times that batches were missing.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Gaps) }),
	total("kv_event_replays_total", "Replays that the worker answered to the end.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Replays) }),
	total("kv_event_replays_failed_total", "Replays that the worker did not answer.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Failed) }),
	total("kv_event_clears_total", "Times that the worker's view was cleared, as it might not hold.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Clears) }),
	total("kv_events_undecodable_total", "Batches that could not be read.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Undecodable) }),
	total("kv_events_dropped_total", "Batches that were not applied: a flood, or no event message.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Dropped) }),
	total("kv_events_skipped_total", "Events that were read and do not concern the index.", workerLabels,
		func(e feed.Stats) float64 { return float64(e.Skipped.Total()) }),
	gauge("kv_events_lag_seconds", "Of the last batch, from the worker's clock when it was published to ours when it "+
		"was applied.", workerLabels, func(e feed.Stats) float64 { return e.Lag.Seconds() }),
	newReading(metric{name: "kv_blocks_held", help: "Blocks that the worker says it holds, by tier: gpu, or local, its " +
		"own memory or disk.", kind: isGauge, labels: []string{"pool", "worker", "tier"}},
		func(e feed.Stats, send func(float64, ...string)) {
			send(float64(e.Held.Held[holdings.GPU]), "gpu")
			send(float64(e.Held.Held[holdings.Local]), "local")
		}),
}
