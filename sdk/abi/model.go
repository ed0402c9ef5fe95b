package abi

// The constants of the model stand here once: the daemon, the simulated worker, the replay and sdktest all count by
// them.
const (
	// BlockBytes is the run of canonical text under one block hash: the unit of the match counts while a prompt is text. A
	// believed depth is off by up to a block: 128 bytes cost 0.3 points of hit rate against 16 bytes, 512 cost 2.6; below
	// 64 the index only grows.
	BlockBytes = 128

	// PrefillTokensPerSecond is what a worker of slowness 1 is taken to prefill, attention aside. Only ratios matter for
	// the choice among workers, and the router learns what they really do. A configuration may set another figure.
	PrefillTokensPerSecond = 15_000

	// AttentionTokens is the length of a prompt at which attention costs as much as the rest of its prefill: the last of
	// half as many tokens costs twice what the first did.
	AttentionTokens = 65_536

	// PrefillSeconds and ContextSeconds are the C1 and C2 that follow, for a worker of slowness 1: n tokens behind p known
	// ones take PrefillSeconds*n + ContextSeconds*n*(p + n/2). Worked value: 15,000 tokens behind none take 1.229 s, one
	// second for the tokens and .229 for attention.
	PrefillSeconds = 1. / PrefillTokensPerSecond
	ContextSeconds = 2 * PrefillSeconds / AttentionTokens
)
