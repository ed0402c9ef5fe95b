package worker

import "encoding/json"

// Workers of one model may have different lengths (--max-model-len): one has a card of 24 GB, one of 80. Each states
// its own in /v1/models. A request that is surely longer than a worker's is answered 400 there, so that worker is no
// candidate while a longer one can take it. If none can, it is: its 400 is the honest answer.

// maxLength bounds a length that is believed. The longest models have 10 million tokens.
const maxLength = 1 << 30

// lengthsOf reads the max_model_len of each model off its entry of /v1/models, 0 if it states none. An adapter has its
// parent's: vLLM writes none for adapters. Those with a parent are the adapters.
func lengthsOf(ids []string, entries []json.RawMessage) (lengths []int, adapters []string) {
	lengths = make([]int, len(ids))
	parents := make([]string, len(ids))
	of := make(map[string]int, len(ids))
	for i := range min(len(ids), len(entries)) {
		var entry struct {
			Length float64 `json:"max_model_len"`
			Parent string  `json:"parent"`
		}
		if json.Unmarshal(entries[i], &entry) == nil && entry.Length >= 1 && entry.Length <= maxLength {
			lengths[i] = int(entry.Length)
		}
		parents[i], of[ids[i]] = entry.Parent, lengths[i]
		if entry.Parent != "" {
			adapters = append(adapters, ids[i])
		}
	}
	for i := range lengths {
		if lengths[i] == 0 {
			lengths[i] = of[parents[i]]
		}
	}
	return lengths, adapters
}

// setLengths records the lengths of the listed models, in the order of ids.
func (l *listing) setLengths(lengths []int) {
	l.lengths, l.length, l.least = lengths, make(map[string]int, len(lengths)), 0
	for i, n := range lengths {
		if n > 0 {
			l.length[l.ids[i]] = n
		}
		if n > 0 && (l.least == 0 || n < l.least) {
			l.least = n
		}
	}
}

// tooShort reports whether the model is shorter than so many tokens. One whose length is not known is not.
func (l *listing) tooShort(model string, tokens int) bool {
	if l == nil || l.least == 0 || tokens <= l.least { // nearly every request: no look-up
		return false
	}
	n := l.length[model]
	return n > 0 && n < tokens
}
