package abi

// Compute returns the seconds that a worker of slowness 1 computes for what no tier of the row's worker has of the
// prompt, attention in. It is one token at least.
func (h *Header) Compute(r *Row) float64 {
	length, block := float64(h.PromptTokens), float64(h.BlockTokens)
	n := max(1, length-float64(r.GPU)*block-float64(r.L1)*block-float64(r.L2)*block)
	return float64(h.C1)*n + float64(h.C2)*n*(length-n/2)
}

// Prefill returns the seconds that the row's worker takes for the prompt, when its turn has come: what it computes, by
// its own slowness, and what it brings to the GPU from the tiers below.
func (h *Header) Prefill(r *Row) float64 {
	block := float64(h.BlockTokens)
	seconds := r.Slow * h.Compute(r)
	if h.InvBWL1 != 0 {
		seconds += float64(r.L1)*block*float64(h.InvBWL1) + float64(r.L2)*block*float64(h.InvBWL2)
	}
	return seconds
}

// TTFT predicts the seconds until the request's first token from the row's worker: what is queued there, and Prefill.
func (h *Header) TTFT(r *Row) float64 { return r.Wait + h.Prefill(r) }
