package route

// Expected is what is known of a request's prompt before it is sent.
type Expected struct {
	Tokens int
	Cached int  // of these, at the first worker of the order
	Exact  bool // Tokens is known and no estimate
	Bytes  int  // of the prompts that are text
	Media  bool // they have images, sounds or films
}

// Expect returns what a request's prompt is expected to need. Call it after Choose has chosen, and before Send.
func Expect(c *Choice) Expected {
	e := Expected{Tokens: c.size.all}
	for i := range c.prompt.Chains {
		chain := &c.prompt.Chains[i]
		e.Media = e.Media || chain.Media
		if chain.Tokens == 0 {
			e.Bytes += chain.Bytes
		}
	}
	e.Exact = (c.size.counted || c.fleet.held.known) && !e.Media
	if row := c.order.first(); row >= 0 && c.size.all > 0 {
		e.Cached = c.believed(Target{Worker: c.fleet.workers[row], row: row})
	}
	return e
}

// Lacking returns how many tokens of the prompt a worker is believed not to hold. Call it before Send.
func Lacking(c *Choice, to Target) int { return max(0, c.size.all-c.believed(to)) }

// TokensOf estimates the tokens of a text by its bytes.
func TokensOf(p *Pool, bytes int) int { return int(float64(bytes) * p.scale.tokensPerByte()) }
