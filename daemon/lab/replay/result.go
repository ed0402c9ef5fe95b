package replay

// Result is one model's run. Its JSON names are those that --json prints;
// seconds are of trace time unless the name has wall in it. A rate or an "over
// mean" is 0 when there was nothing to make it from.
type Result struct {
	Model    string  `json:"model"`
	Speed    float64 `json:"speed"`
	Requests int     `json:"requests"` // in the trace, limit applied
	Sent     int     `json:"sent"`
	Answered int     `json:"answered"` // to the end, with [DONE]

	// Errors counts requests by kind: "status 503", "connect", "connection
	// lost", "stream cut short", "error event", "deadline", "canceled", "not
	// sent" (the deadline or the end came first). FirstError is one in words.
	Errors     map[string]int `json:"errors"`
	FirstError string         `json:"first_error,omitempty"`

	// TTFT runs from sending to the first event with output, Total to the end
	// of the answer.
	TTFT  Distribution `json:"ttft_seconds"`
	Total Distribution `json:"total_seconds"`

	// BlockHitRate is CachedBlocks over PromptBlocks: of every answered
	// request, the whole KV blocks of 16 tokens in the cached_tokens that the
	// worker reported, over the whole blocks of its prompt.
	BlockHitRate float64 `json:"block_hit_rate"`
	CachedBlocks int     `json:"cached_blocks"`
	PromptBlocks int     `json:"prompt_blocks"`

	// TokenHitRate is the same in tokens. TraceTokens is the trace's count for the
	// same prompts: it differs from PromptTokens when the workers' tokenizer is
	// not the one that the text was made for.
	TokenHitRate float64 `json:"token_hit_rate"`
	CachedTokens int     `json:"cached_tokens"`
	PromptTokens int     `json:"prompt_tokens"`
	TraceTokens  int     `json:"trace_tokens"`
	NoUsage      int     `json:"no_usage"` // answers that reported none; they are in no rate

	// Workers that answered. The work of the busiest (see PrefillSeconds) and
	// its requests, over the mean of these workers; a worker that got nothing
	// is not seen from here. All 0 if the daemon does not name its workers.
	Workers                 int     `json:"workers"`
	WorkBusiestOverMean     float64 `json:"work_busiest_over_mean"`
	RequestsBusiestOverMean float64 `json:"requests_busiest_over_mean"`

	// Of the client itself: requests held back by the bound in flight, the
	// most open at once, and how late the latest request left.
	Held           int     `json:"held"`
	PeakInFlight   int     `json:"peak_in_flight"`
	LateSecondsMax float64 `json:"late_seconds_max"`
	WallSeconds    float64 `json:"wall_seconds"`
}

// Distribution of seconds; percentiles are nearest ranks.
type Distribution struct {
	Count int     `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}
