package lmcache

import "github.com/tinylib/msgp/msgp"

// The answers to a worker's requests, as msgspec encodes them: maps whose first key is "type", defaults included.

func begin(fields uint32, name string) []byte {
	return msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(nil, fields), "type"), name)
}

// registered answers RegisterMsg. If url is empty, the worker sends no heartbeats.
func registered(heartbeatURL string) []byte {
	b := msgp.AppendString(begin(2, "RegisterRetMsg"), "extra_config")
	if heartbeatURL == "" {
		return msgp.AppendMapHeader(b, 0)
	}
	b = msgp.AppendString(msgp.AppendMapHeader(b, 1), "heartbeat_url")
	return msgp.AppendString(b, heartbeatURL)
}

// beaten answers HeartbeatMsg. A reason makes it ask for a full sync.
func beaten(reason string) []byte {
	b := msgp.AppendString(begin(2, "HeartbeatRetMsg"), "commands")
	if reason == "" {
		return msgp.AppendArrayHeader(b, 0)
	}
	b = msgp.AppendMapHeader(msgp.AppendArrayHeader(b, 1), 3)
	b = msgp.AppendString(msgp.AppendString(b, "command_type"), "full_sync")
	b = msgp.AppendString(msgp.AppendString(b, "reason"), reason)
	return msgp.AppendNil(msgp.AppendString(b, "args"))
}

// started answers FullSyncStartMsg. A refusal carries its reason.
func started(sync, refusal string) []byte {
	b := msgp.AppendString(begin(4, "FullSyncStartRetMsg"), "sync_id")
	b = msgp.AppendString(b, sync)
	b = msgp.AppendBool(msgp.AppendString(b, "accepted"), refusal == "")
	b = msgp.AppendString(b, "error_msg")
	if refusal == "" {
		return msgp.AppendNil(b)
	}
	return msgp.AppendString(b, refusal)
}

// progress is how far a full sync has come.
type progress struct {
	complete bool
	share    float64 // of the batches, 0 to 1
	missing  []int   // batches, once the worker has reported that it has sent all
}

// answer answers FullSyncStatusMsg. The worker may go on as soon as its own batches are in: the upstream controller
// lets it wait for the others of the fleet.
func (p progress) answer(sync string) []byte {
	b := msgp.AppendString(begin(6, "FullSyncStatusRetMsg"), "sync_id")
	b = msgp.AppendString(b, sync)
	b = msgp.AppendBool(msgp.AppendString(b, "is_complete"), p.complete)
	b = msgp.AppendFloat64(msgp.AppendString(b, "global_progress"), p.share)
	b = msgp.AppendBool(msgp.AppendString(b, "can_exit_freeze"), p.complete)
	b = msgp.AppendArrayHeader(msgp.AppendString(b, "missing_batches"), uint32(len(p.missing)))
	for _, n := range p.missing {
		b = msgp.AppendInt(b, n)
	}
	return b
}

// found is where the first chunks of a BatchedP2PLookupMsg are; the zero value is nowhere.
type found struct {
	instance, location string
	chunks             int
	peerURL            string
}

func (f found) answer() []byte {
	b := msgp.AppendString(begin(2, "BatchedP2PLookupRetMsg"), "layout_info")
	b = msgp.AppendArrayHeader(msgp.AppendArrayHeader(b, 1), 4)
	b = msgp.AppendString(msgp.AppendString(b, f.instance), f.location)
	return msgp.AppendString(msgp.AppendInt(b, f.chunks), f.peerURL)
}

// refused answers what is not understood.
func refused(why string) []byte {
	return msgp.AppendString(msgp.AppendString(begin(2, "ErrorMsg"), "error"), why)
}
