package peers

import "time"

// Stats describes the history that routers share, for an operator.
type Stats struct {
	On        bool        `json:"on"`
	Connected bool        `json:"connected"`           // to the Redis that carries the messages
	Losses    uint64      `json:"losses"`              // of that connection
	Since     time.Time   `json:"lost_since,omitzero"` // when it was lost; zero: it is there
	Err       string      `json:"error,omitempty"`     // why it is lost
	Pools     []PoolStats `json:"pools"`
}

// PoolStats counts the messages between the routers of a pool.
type PoolStats struct {
	Name    string            `json:"pool"`
	Routers []Router          `json:"routers"`
	Told    Traffic           `json:"told"`
	Heard   Traffic           `json:"heard"`
	Replay  Progress          `json:"replay"`
	Dropped map[string]uint64 `json:"dropped"` // by reason
	Waiting int               `json:"waiting"` // to be sent

	Received ReceiverStats `json:"-"`
	Chains   int           `json:"-"` // hashes of the chains that messages can name
}

// Traffic counts the messages in one direction.
type Traffic struct {
	Frames  uint64 `json:"messages"`
	Bytes   uint64 `json:"bytes"`
	Records uint64 `json:"events"`
}

// dropped returns what was not sent or not applied, by reason.
func dropped(s *SenderStats, r *ReceiverStats) map[string]uint64 {
	return map[string]uint64{"not taken": s.Dropped, "gap": r.Gaps, "repeated": r.Repeated, "no message": r.Foreign,
		"other version": r.Versions, "other secret": r.Secrets, "flood": r.Flooded, "unknown beginning": r.Unlinked,
		"router gone": r.Expired}
}
