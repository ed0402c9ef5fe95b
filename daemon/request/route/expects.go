package route

// Expected is the tokens that a request is expected to need, before it is sent.
type Expected struct {
	Prompt int
	Cached int  // of the prompt, at the first worker of the order
	Output int  // 0 = not known
	Exact  bool // Prompt is known and no estimate
}

// Expect returns what a request is expected to need. Call it after Choose has chosen, and before Send.
func Expect(c *Choice) Expected {
	e := Expected{Prompt: c.size.all, Output: int(c.fleet.frame.Header.ExpectedOutput),
		Exact: c.size.counted || c.fleet.held.known}
	if row := c.order.first(); row >= 0 && c.size.all > 0 {
		e.Cached = c.believed(Target{Worker: c.fleet.workers[row], row: row})
	}
	return e
}

// Lacking returns how many tokens of the prompt a worker is believed not to hold. Call it before Send.
func Lacking(c *Choice, to Target) int { return max(0, c.size.all-c.believed(to)) }

// TokensOf estimates the tokens of a text by its bytes.
func TokensOf(p *Pool, bytes int) int { return int(float64(bytes) * p.scale.tokensPerByte()) }
