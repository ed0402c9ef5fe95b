package kvevents

import "hash/maphash"

// remembered is how many batches a ledger knows by their content: as many as may come late or twice.
const remembered = 1024

// ledger is the sequence of one publisher's process: which batch comes next, and what the last ones were. By its
// sequence number alone a late batch looks like one of a new process, which starts at 0 again. So the ledger keeps
// their sums.
type ledger struct {
	next uint64 // 0 = nothing has come
	seed maphash.Seed
	sums [remembered]uint64 // by sequence modulo; 0 = not known
}

func newLedger() *ledger { return &ledger{seed: maphash.MakeSeed()} }

// verdict is what a batch is to the sequence.
type verdict uint8

const (
	inOrder   verdict = iota
	ahead             // batches before it are missing
	duplicate         // it has been applied
	late              // it comes after it was given up
	restarted         // another process speaks
)

func (l *ledger) sum(payload []byte) uint64 { return max(1, maphash.Bytes(l.seed, payload)) }

// judge compares a batch with what is known.
func (l *ledger) judge(seq uint64, payload []byte) verdict {
	switch {
	case seq == l.next:
		return inOrder
	case seq > l.next:
		return ahead
	case l.next-seq > remembered:
		return restarted
	}
	switch l.sums[seq%remembered] {
	case 0:
		return late
	case l.sum(payload):
		return duplicate
	}
	return restarted
}

// note enters a batch that is applied, the next one.
func (l *ledger) note(seq uint64, payload []byte) {
	l.sums[seq%remembered] = l.sum(payload)
	l.next = seq + 1
}

// passOver enters the batches up to seq, which are not applied.
func (l *ledger) passOver(seq uint64) {
	for n := l.next; n <= seq && n < l.next+remembered; n++ {
		l.sums[n%remembered] = 0
	}
	l.next = seq + 1
}

// reset forgets all: the next process starts at 0.
func (l *ledger) reset() { *l = ledger{seed: l.seed} }
