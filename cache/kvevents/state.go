package kvevents

import "time"

// State is how far a source's events may be believed.
type State uint8

// The states.
const (
	Never     State = iota // no connection has been made yet
	Replaying              // connected, and asking for what came before
	Live                   // what the sink got is all that the worker holds
	Partial                // every event since Stats.Since is there, but not all before it
	Behind                 // batches wait to be applied, and the last one was old
	Gap                    // batches were missed and could not be had again: the sink was cleared, and a replay is tried
	Lost                   // the connection is gone: it is dialled again and again
)

// String returns the name.
func (s State) String() string {
	return [...]string{"never connected", "replaying", "live", "partial", "behind", "gap", "connection lost"}[s]
}

// Stats are the counts of one source since it was made, and where it stands.
type Stats struct {
	State     State
	Since     time.Time // of State
	Connected bool
	Problem   string // of the last connection or replay that failed; "" = none, or it works again

	Batches, Events, Bytes uint64
	LastBatch              time.Time // when it came; zero = none yet
	Next                   uint64    // sequence that is expected

	Connections uint64 // made
	Gaps        uint64 // batches were missing
	Replays     uint64 // asked for and answered to the end
	Replayed    uint64 // batches that came by them
	Failed      uint64 // replays
	Clears      uint64 // of the sink that the worker did not ask for
	Duplicates  uint64 // batches that came twice or too late
	Restarts    uint64 // of the worker's process, seen in its sequence
	Undecodable uint64 // batches that break off or have an event of which nothing can be made
	Dropped     uint64 // batches that were not applied: a flood, or frames that are no event message
	Skipped     Skipped

	Lag   time.Duration // from the worker's clock when it published the last batch to ours when it was applied
	Topic string        // of the last message, cut to 256 bytes
	Rank  int           // data-parallel rank that the last batch named
}
