package prompt

// Urgency returns the priority that the body asks for, greater first, and whether it asks for one. vLLM's own field has
// the lower first. Call it before Trim.
func (r *Request) Urgency() (priority int, ok bool) {
	if p, ok := Priority(r.fields.raw(fieldHintPriority)); ok {
		return p, true
	}
	if p, ok := Priority(r.fields.raw(fieldPriority)); ok {
		return -p, true
	}
	switch string(r.fields.inside(fieldTier)) {
	case "flex":
		return -1, true
	case "priority":
		return 1, true
	}
	return 0, false
}

// mostPriority is far beyond every bound of priorities: what is greater is a mistake, and says nothing.
const mostPriority = 1e9

// Priority reads a number as JSON writes it, in a body or a header field. It returns false for other values, and for
// an absurd number.
func Priority(text []byte) (priority int, ok bool) {
	if len(text) == 0 || len(text) > 32 || text[0] != '-' && text[0]-'0' > 9 {
		return 0, false
	}
	n := parseNumber(text)
	if n == 0 && !isZero(text) || !(n >= -mostPriority && n <= mostPriority) {
		return 0, false
	}
	return int(n), true
}

// isZero reports whether a number is written as zero: parseNumber also returns 0 for values that are not numbers.
func isZero(text []byte) bool {
	for _, c := range text {
		if c != '0' && c != '-' && c != '.' {
			return false
		}
	}
	return text[len(text)-1] == '0'
}
