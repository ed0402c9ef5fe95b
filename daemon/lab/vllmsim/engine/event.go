package engine

import "time"

// Kind is what an Event reports.
type Kind uint8

// The kinds of events.
const (
	Admitted   Kind = iota // a step began to work on the sequence, for the first time or after a preemption
	FirstToken             // the sequence has its first token
	Tokens                 // it has more tokens than the events before it reported
	Preempted              // it was sent back to wait, and its blocks were freed
	Finished               // it has ended: see Sequence.Finish
)

// Event is one thing that happened to a sequence.
type Event struct {
	At   time.Duration // simulated
	Kind Kind
	Seq  *Sequence
}
