package tokens

// Outcome is what became of a request's wish for token ids. It is a label of warmpath_tokens_total.
type Outcome string

// The first four bring ids. With every other outcome, the request is routed by its text.
const (
	Given       Outcome = "given"       // the body named the ids
	Cached      Outcome = "cached"      // the text was known
	Extended    Outcome = "extended"    // its beginning was known, and a worker was asked for the end
	Asked       Outcome = "asked"       // a worker was asked for all of it
	Late        Outcome = "late"        // no answer within the budget
	Failed      Outcome = "failed"      // the worker that was asked failed
	Refused     Outcome = "refused"     // the worker that was asked refused the text, as it will refuse the request
	Unsupported Outcome = "unsupported" // no way to the exact ids: several prompts, media, a field that /tokenize lacks
	TooLong     Outcome = "too_long"    // more text than a worker is asked to tokenise
	Busy        Outcome = "busy"        // as many workers' answers are awaited as may be
	Nobody      Outcome = "nobody"      // no worker can be asked: down, or resting after failures
	Gone        Outcome = "gone"        // the client left
)
