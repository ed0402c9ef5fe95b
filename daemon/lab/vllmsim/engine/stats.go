package engine

// Stats is what an engine has done since its start and what it holds now. Times are simulated seconds.
type Stats struct {
	PrefillSeconds  float64 // prefill work done: its maximum over its mean is the imbalance of a fleet
	ComputedTokens  int64   // in prefill
	CachedTokens    int64   // with those of the tiers
	CPUTokens       int64   // of the CachedTokens, those loaded from the CPU tier
	SharedTokens    int64   // those loaded from the shared one
	RemoteTokens    int64   // those loaded from another engine
	StaleRequests   int64   // sequences that got CachedTokens which other weights had computed
	StaleTokens     int64   // these tokens
	ExternalQueries int64   // prompt tokens that tiers were asked for
	QueriedTokens   int64   // prompt tokens looked up; CachedTokens over this is the hit rate
	PromptTokens    int64   // of sequences that have their first token
	GeneratedTokens int64
	Steps           int64
	Preemptions     int64
	AdapterLoads    int64                   // of LoRA adapters to the GPU
	Finished        [len(finishNames)]int64 // by Finish; aborted sequences are not counted, as in vLLM

	Running      int
	Waiting      int
	Loading      int // sequences whose blocks come from a tier
	Blocks       int // usable
	BlocksHeld   int // by sequences
	BlocksPinned int // of these, by sequences that have ended: see Sequence.Keep
	BlocksCached int // findable by hash
	ChunksOnCPU  int

	TTFT       Histogram // from arrival to the first token
	InterToken Histogram
	Queue      Histogram // from arrival to admission
	Forward    Histogram // from admission to the first token
	// The others are of sequences that have ended by themselves.
	Latency       Histogram
	Prefill       Histogram // as Forward
	PrefillTokens Histogram // prompt tokens that were not cached
	PerToken      Histogram // mean time between two tokens of a sequence
	StepTokens    Histogram // of one step

	TierHits Histogram // of what a request asked tiers for, the share that they had
}

// Stats returns what the engine has done, and what it holds as of the last call.
func (e *Engine) Stats() Stats {
	s := e.journal.sums
	s.Running = len(e.sched.running)
	s.Waiting = len(e.sched.waiting)
	s.Loading = len(e.sched.loading)
	s.Blocks = e.sched.pool.usable()
	s.BlocksHeld = s.Blocks - e.sched.pool.free
	s.BlocksPinned = e.sched.pinned
	s.BlocksCached = e.sched.pool.cached
	s.ChunksOnCPU = e.sched.cpu.Len()
	s.AdapterLoads = e.sched.adapters.loads
	return s
}

// KVUsage returns the part of the usable blocks that sequences hold, 0 to 1.
func (s *Stats) KVUsage() float64 { return 1 - float64(s.Blocks-s.BlocksHeld)/float64(s.Blocks) }

// newStats returns sums of nothing, for a worker of the given context length.
func newStats(maxModelLen int) (s Stats) {
	s.TTFT.Bounds, s.TierHits.Bounds = ttftBounds, []float64{0, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}
	s.InterToken.Bounds = interTokenBounds
	s.Queue.Bounds = latencyBounds
	s.Forward.Bounds = latencyBounds
	s.Latency.Bounds = latencyBounds
	s.Prefill.Bounds = latencyBounds
	s.StepTokens.Bounds = stepBounds
	s.PrefillTokens.Bounds = tokenBounds(maxModelLen)
	s.PerToken.Bounds = interTokenBounds
	return s
}
