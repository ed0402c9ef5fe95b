package metrics

import "github.com/warmpath/warmpath/daemon/peers"

// ofHistory has no values where no history is shared.
var ofHistory = []reading[peers.Stats]{
	gauge("history_connected", "1 if the Redis through which routers share their history answers.", nil,
		func(s peers.Stats) float64 { return bit(s.Connected) }),
	total("history_losses_total", "Times that the Redis of the history was lost.", nil,
		func(s peers.Stats) float64 { return float64(s.Losses) }),
}

var ofPeers = []reading[*peers.PoolStats]{
	gauge("history_routers", "Other routers whose messages come.", poolLabels, func(p *peers.PoolStats) float64 {
		n := 0
		for i := range p.Routers {
			if p.Routers[i].Alive {
				n++
			}
		}
		return float64(n)
	}),
	gauge("history_lag_seconds", "How long the newest message of another router took.", poolLabels,
		func(p *peers.PoolStats) float64 { return p.Received.Lag.Seconds() }),
	gauge("history_others_in_flight", "Requests of other routers that are in flight.", poolLabels,
		func(p *peers.PoolStats) float64 { return float64(p.Received.Open) }),
	gauge("history_waiting_messages", "Messages that Redis has not taken yet.", poolLabels,
		func(p *peers.PoolStats) float64 { return float64(p.Waiting) }),
	byWay("history_messages_total", "Messages sent to other routers, and received from them.",
		func(p *peers.PoolStats) (sent, received uint64) { return p.Told.Frames, p.Heard.Frames }),
	byWay("history_bytes_total", "Bytes of these messages.",
		func(p *peers.PoolStats) (sent, received uint64) { return p.Told.Bytes, p.Heard.Bytes }),
	byWay("history_events_total", "What they say: a request sent, its first byte, its answer, its end, and more.",
		func(p *peers.PoolStats) (sent, received uint64) { return p.Told.Records, p.Heard.Records }),
	newReading(metric{name: "history_dropped_total", help: "What was not sent or not applied, by reason.",
		kind: isCounter, labels: []string{"pool", "reason"}},
		func(p *peers.PoolStats, send func(float64, ...string)) {
			for reason, n := range p.Dropped {
				send(float64(n), reason)
			}
		}),
	total("history_late_messages_total", "Messages that had been missing, and came late: a gap that closed.", poolLabels,
		func(p *peers.PoolStats) float64 { return float64(p.Received.Late) }),
	gauge("history_replay_messages", "Messages found in Redis when the pool joined.", poolLabels,
		func(p *peers.PoolStats) float64 { return float64(p.Replay.Messages) }),
	gauge("history_replayed_messages", "Of these, those that have been applied.", poolLabels,
		func(p *peers.PoolStats) float64 { return float64(p.Replay.Done) }),
}

// ofStateFile has no values where no file is written.
var ofStateFile = []reading[peers.Written]{
	newReading(metric{name: "state_file_written_timestamp_seconds",
		help: "When the state file or its log was last written.", kind: isGauge},
		func(w peers.Written, send func(float64, ...string)) {
			if !w.At.IsZero() {
				send(float64(w.At.UnixMilli()) / 1e3)
			}
		}),
	gauge("state_file_bytes", "Bytes of the state file and its log.", nil,
		func(w peers.Written) float64 { return float64(w.Bytes) }),
	gauge("state_file_write_seconds", "How long that took.", nil,
		func(w peers.Written) float64 { return w.Took.Seconds() }),
	gauge("state_file_failing", "1 if the last try to write the state file failed.", nil,
		func(w peers.Written) float64 { return bit(w.Failed) }),
	total("state_file_failures_total", "Tries to write the state file that failed.", nil,
		func(w peers.Written) float64 { return float64(w.Failures) }),
}

// byWay declares a count of messages, with one series for those sent and one for those received.
func byWay(name, help string, value func(*peers.PoolStats) (sent, received uint64)) reading[*peers.PoolStats] {
	return newReading(metric{name: name, help: help, kind: isCounter, labels: []string{"pool", "way"}},
		func(p *peers.PoolStats, send func(float64, ...string)) {
			sent, received := value(p)
			send(float64(sent), "told")
			send(float64(received), "heard")
		})
}
