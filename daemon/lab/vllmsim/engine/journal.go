package engine

import "time"

// journal records what happens: as events for the caller, and in sums.
type journal struct {
	events []Event
	sums   Stats // without what the engine holds now
	gap    func(time.Duration)
}

// clear forgets the events, which the caller has seen.
func (j *journal) clear() {
	clear(j.events) // else a sequence that has ended would live on
	j.events = j.events[:0]
}

func (j *journal) add(kind Kind, q *Sequence, at time.Duration) {
	j.events = append(j.events, Event{At: at, Kind: kind, Seq: q})
}

// step records a step with so many seconds and tokens of prefill.
func (j *journal) step(prefillSeconds float64, prefillTokens, decodes int) {
	j.sums.Steps++
	j.sums.StepTokens.observe(float64(prefillTokens + decodes))
	j.sums.PrefillSeconds += prefillSeconds
	j.sums.ComputedTokens += int64(prefillTokens)
}

// admitted records that a step begins to work on a sequence. Only the first admission counts in the sums.
func (j *journal) admitted(q *Sequence, at time.Duration) {
	j.add(Admitted, q, at)
	if q.preemptions > 0 {
		return
	}
	q.times.Admitted = at
	q.cached = q.done + q.load.blocks*q.blockSize
	if q.load.asked {
		j.sums.ExternalQueries += int64(q.length() - q.done)
		j.sums.TierHits.observe(float64(q.load.blocks*q.blockSize) / float64(max(1, q.length()-q.done)))
	}
	if q.stale > 0 {
		j.sums.StaleRequests++
		j.sums.StaleTokens += int64(q.stale)
	}
	j.sums.CPUTokens += int64(q.load.cpu)
	j.sums.RemoteTokens += int64(q.load.remote)
	j.sums.SharedTokens += int64(q.load.shared)
	j.sums.QueriedTokens += int64(q.length())
	j.sums.CachedTokens += int64(q.cached)
	j.sums.Queue.observe((at - q.times.Arrived).Seconds())
}

// generated records the token that a sequence has just got.
func (j *journal) generated(q *Sequence, at time.Duration) {
	j.sums.GeneratedTokens++
	if q.output == 1 {
		j.add(FirstToken, q, at)
		q.times.First = at
		j.sums.PromptTokens += int64(q.prompt)
		j.sums.TTFT.observe((at - q.times.Arrived).Seconds())
		j.sums.Forward.observe((at - q.times.Admitted).Seconds())
	} else {
		j.sums.InterToken.observe((at - q.times.Last).Seconds())
		if j.gap != nil {
			j.gap(at - q.times.Last)
		}
	}
	q.times.Last = at
}

func (j *journal) preempted(q *Sequence, at time.Duration) {
	j.add(Preempted, q, at)
	j.sums.Preemptions++
}

// finished records the end of a sequence that ended by itself.
func (j *journal) finished(q *Sequence, at time.Duration) {
	j.add(Finished, q, at)
	j.sums.Finished[q.finish]++
	t := &q.times
	j.sums.Latency.observe((at - t.Arrived).Seconds())
	j.sums.Prefill.observe((t.First - t.Admitted).Seconds())
	j.sums.PrefillTokens.observe(float64(q.prompt - q.cached))
	j.sums.PerToken.observe((at - t.First).Seconds() / float64(max(1, q.output-1)))
}
