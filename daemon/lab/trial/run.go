package trial

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Run is what one simulated run of one strategy left.
type Run struct {
	Scenario string
	Strategy string
	Seed     uint64

	Outcomes []Outcome // by Request.ID
	Workers  []Worker  // by number

	Ended      time.Duration // when the last request ended
	GPUSeconds float64       // summed over workers: seconds up, times the GPUs of each
	Moved      int           // later turns of a conversation that were sent to another worker than the turn before

	// ITLP50 and ITLP99 are quantiles of the seconds between two tokens of an answer, over all tokens; 0 = not measured.
	ITLP50, ITLP99 float64

	Prefills int   // prompts computed at another worker than the one that answered; each is a request there, of one token
	Handed   int64 // tokens of those prompts that the one that answered did not compute

	Moves      int   // prompts that workers computed for no client, as others that leave held them
	MoveTokens int64 // of them, that were not cached there

	Remarks

	// Decisions is a hash over all choices: request, worker, instant. Runs that chose alike have the same.
	Decisions uint64
}

// Moves are those of conversations from one worker to another.
type Moves struct {
	Moved, Failed, Used     int // Used: the next turn came to the worker that the conversation had been moved to
	TokensMoved, TokensUsed int // of the prompts
}

// Remarks are what a strategy did in addition to choosing.
type Remarks struct {
	Fallbacks int               // choices that the host made in its place, as it failed or declined
	Rejected  int               // requests that it turned away
	Rejection string            // what it said the last time
	Left      Moves             // of conversations, away from workers that leave or to ones that come
	Refused   map[string]uint64 // its calls that allow does not permit, by the entry that they lack
}

// Add adds those of another router.
func (r *Remarks) Add(other Remarks) {
	r.Fallbacks += other.Fallbacks
	r.Rejected += other.Rejected
	r.Left.Moved += other.Left.Moved
	r.Left.Failed += other.Left.Failed
	r.Left.Used += other.Left.Used
	r.Left.TokensMoved += other.Left.TokensMoved
	r.Left.TokensUsed += other.Left.TokensUsed
	r.Rejection = cmp.Or(other.Rejection, r.Rejection)
	for entry, n := range other.Refused {
		if r.Refused == nil {
			r.Refused = map[string]uint64{}
		}
		r.Refused[entry] += n
	}
}

// Outcome is what became of one request.
type Outcome struct {
	Arrived time.Duration
	First   time.Duration // first token; 0 = none came
	Ended   time.Duration // last token, or the end without one

	Worker   int // that answered, or broke; -1 = none
	Session  uint64
	Turn     int
	Tenant   uint64
	Status   Status
	Attempts int           // workers that it was sent to
	Queued   time.Duration // in the router
	Behind   time.Duration // of the time to the first token: the worker computed prompts that a router moved there

	Prompt int // tokens
	Output int // tokens generated
	Cached int // tokens of the prompt that were not computed: on the GPU, or loaded from a tier
	CPU    int // of them, loaded from the worker's CPU memory
	Shared int // of them, loaded from the tier that workers share
}

// TTFT is the time from arrival to the first token in seconds, NaN if none came.
func (o *Outcome) TTFT() float64 {
	if o.First == 0 {
		return math.NaN()
	}
	return (o.First - o.Arrived).Seconds()
}

// TPOT is the mean time between two tokens of an answer that came to its end, in seconds, NaN for fewer than two.
func (o *Outcome) TPOT() float64 {
	if o.Status != Answered || o.Output < 2 {
		return math.NaN()
	}
	return (o.Ended - o.First).Seconds() / float64(o.Output-1)
}

// Latency is the time from arrival to the last token of an answer that came to its end, in seconds, NaN of others.
func (o *Outcome) Latency() float64 {
	if o.Status != Answered {
		return math.NaN()
	}
	return (o.Ended - o.Arrived).Seconds()
}

// Worker is what one worker did in a run.
type Worker struct {
	Requests       int     // sent there
	PrefillSeconds float64 // of work
	ComputedTokens int64   // in prefill
	CachedTokens   int64   // of prompts, tiers included
	CPUTokens      int64   // of them, from its CPU memory
	SharedTokens   int64   // of them, from the shared tier
	Generated      int64   // tokens
	Preemptions    int64
	UpSeconds      float64
}

// Values returns what of returns for each outcome, in order of arrival, without those that are not a number.
func (r *Run) Values(of func(*Outcome) float64) []float64 {
	values := make([]float64, 0, len(r.Outcomes))
	for i := range r.Outcomes {
		if v := of(&r.Outcomes[i]); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values
}

// Count returns how many requests ended with the status.
func (r *Run) Count(s Status) (n int) {
	for i := range r.Outcomes {
		if r.Outcomes[i].Status == s {
			n++
		}
	}
	return n
}

// OutputTokens is the tokens generated for requests that were answered.
func (r *Run) OutputTokens() (n int) {
	for i := range r.Outcomes {
		if r.Outcomes[i].Status == Answered {
			n += r.Outcomes[i].Output
		}
	}
	return n
}

// Imbalance is the largest prefill work of a worker over the mean: 1 is even. 1 too if there was none.
func (r *Run) Imbalance() float64 {
	most, sum := 0.0, 0.0
	for i := range r.Workers {
		most = max(most, r.Workers[i].PrefillSeconds)
		sum += r.Workers[i].PrefillSeconds
	}
	if sum == 0 {
		return 1
	}
	return most * float64(len(r.Workers)) / sum
}

// Preemptions is how often a request was sent back to wait for want of KV blocks.
func (r *Run) Preemptions() (n int64) {
	for i := range r.Workers {
		n += r.Workers[i].Preemptions
	}
	return n
}

// Mean returns the mean of values, NaN of none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Quantile returns the value below which the part q of values lies, between two of them by interpolation, NaN of none.
// It sorts values. Worked: of 1, 2, 3, 4 the quantile .5 is 2.5.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	at := q * float64(len(values)-1)
	i := int(at)
	if i+1 >= len(values) {
		return values[len(values)-1]
	}
	return values[i] + (at-float64(i))*(values[i+1]-values[i])
}
