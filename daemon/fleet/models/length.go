package models

// Workers of one model may have different lengths (--max-model-len): one has a card of 24 GB, one of 80. Each states
// its own in /v1/models. A worker answers 400 to a request that is longer than its max_model_len. So the worker is
// not a candidate while another one with a larger max_model_len can take the request. If none can, it is: its 400 is
// the honest answer.

// maxLength bounds a length that is believed. The longest models have 10 million tokens.
const maxLength = 1 << 30

// lengthsOf returns the max_model_len of each listed model, 0 if it states none. An adapter has its parent's: vLLM
// writes none for adapters.
func lengthsOf(ids []string, cards []card) []int {
	lengths := make([]int, len(ids))
	of := make(map[string]int, len(ids))
	for i, c := range cards {
		if c.length >= 1 && c.length <= maxLength {
			lengths[i] = int(c.length)
		}
		of[ids[i]] = lengths[i]
	}
	for i, c := range cards {
		if lengths[i] == 0 {
			lengths[i] = of[c.parent]
		}
	}
	return lengths
}

// setLengths records the lengths of the listed models, in the order of ids.
func (l *Listing) setLengths(lengths []int) {
	l.Lengths, l.length, l.least = lengths, make(map[string]int, len(lengths)), 0
	for i, n := range lengths {
		if n > 0 {
			l.length[l.IDs[i]] = n
		}
		if n > 0 && (l.least == 0 || n < l.least) {
			l.least = n
		}
	}
}

// IsShorter reports whether the model is shorter than the given number of tokens. One whose length is not known is
// not.
func (l *Listing) IsShorter(model string, tokens int) bool {
	if l == nil || l.least == 0 || tokens <= l.least { // nearly every request: no look-up
		return false
	}
	n := l.length[model]
	return n > 0 && n < tokens
}

// Length returns the length of the model, 0 if it is not known.
func (l *Listing) Length(model string) int { return l.length[model] }
