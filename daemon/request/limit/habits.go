package limit

import (
	"math"
	"time"
)

// Ask is what is known of a request before it is sent.
type Ask struct {
	Prompt  int  // tokens: a count if Exact, else what the pool expects
	Cached  int  // of these, believed to be in the worker's cache
	Exact   bool // the tokens were counted
	Bytes   int  // of the prompt's text
	Media   bool // the prompt has images, sounds or films
	Answers int  // 0 = none is generated
	Most    int  // tokens of all answers together; 0 = the client has not said
	Whole   bool // the answer comes in one piece, so that nothing shows how long it has got
}

// habits is what a key's own requests have shown. Nobody else's change it.
type habits struct {
	perByte  mean    // tokens in a byte of text
	perMedia mean    // tokens that a prompt with media has beside its text
	answers  [2]mean // tokens of an answer, to text alone and to media
	beyond   bool    // the last answer was longer than its client allowed
	speed    mean    // tokens a second of an answer in one piece, its wait at the worker and its prompt included
}

// mean is a running mean.
type mean struct {
	is float64
	n  int // how many there were
}

func (m *mean) add(x float64) {
	m.n++
	m.is += (x - m.is) / float64(min(m.n, steady))
}

const (
	steady      = 64      // samples from which on each new one counts 1/steady
	enough      = 8       // answers, to go by them
	usual       = 256     // tokens of an answer before any was seen
	usualMedia  = 1000    // tokens of a prompt's media, the same
	untried     = 1. / 6  // of a minute: the answer that a key may get of which nothing is known
	leastBytes  = 512     // of a prompt: a shorter one is mostly template
	bytesAToken = 16      // a lower bound: no tokenizer makes fewer tokens of a whole prompt
	plausible   = 1 << 24 // tokens: a worker that counts more counts nonsense
	usualSpeed  = 50      // tokens a second of an answer in one piece before any was seen
	leastSpeed  = 10      // the same, whatever the key's requests have shown
	leastTimed  = 32      // tokens of an answer: a shorter one takes as long as its prompt
)

func kindOf(a *Ask) int {
	if a.Media {
		return 1
	}
	return 0
}

// expect returns the tokens that a request is expected to need, and by how much its answers may outgrow that. Nobody
// knows how long an answer gets, and a key may ask for short ones until it asks for long ones. So each counts as usual
// at least until it ends, and as a share of the minute while few answers of the key are known.
func (h *habits) expect(a *Ask, minute int) (t Tokens, risk float64) {
	t = Tokens{Prompt: a.Prompt, Cached: a.Cached}
	if !a.Exact && a.Bytes > 0 {
		perByte, media := float64(a.Prompt)/float64(a.Bytes), 0.
		if h.perByte.n > 0 {
			perByte = h.perByte.is
		}
		if a.Media {
			media = usualMedia
			if h.perMedia.n > 0 {
				media = h.perMedia.is
			}
		}
		t.Prompt = int(math.Ceil(float64(a.Bytes)*perByte + media))
		if a.Prompt > 0 {
			t.Cached = int(float64(a.Cached) / float64(a.Prompt) * float64(t.Prompt))
		}
	}
	m := &h.answers[kindOf(a)]
	each := float64(usual)
	if m.n >= enough {
		each = m.is
	}
	may := max(each, usual, untried*float64(minute)/(1+float64(m.n)/2))
	n := float64(a.Answers)
	bound := *a
	if h.beyond {
		bound.Most = 0
	}
	t.Output = bound.bounded(math.Ceil(each * n))
	return t, min(mostRisk*float64(minute), float64(bound.bounded(math.Ceil(may*n))-t.Output))
}

// bounded returns tokens of all answers, of which there are not more than the client has asked for.
func (a *Ask) bounded(tokens float64) int {
	if a.Most > 0 {
		tokens = min(tokens, float64(a.Most))
	}
	return int(min(tokens, plausible))
}

// least returns the tokens that the prompt has at least. What is refused for them is refused for good, so that they are
// a count, or the bytes of a text by a bound that no tokenizer breaks.
func (h *habits) least(a *Ask) int {
	if a.Exact {
		return a.Prompt
	}
	perByte := 1. / bytesAToken
	if h.perByte.n > 0 {
		perByte = min(perByte, h.perByte.is/2)
	}
	return int(perByte * float64(a.Bytes))
}

// pace returns the tokens a second of an answer in one piece.
func (h *habits) pace() float64 {
	if h.speed.n < enough {
		return usualSpeed
	}
	return max(leastSpeed, h.speed.is)
}

// far is by how many times an answer is longer than its client allowed, by the bytes of its text, if it surely is.
// Text has two to six bytes a token.
const far = 2

// learn takes the engine's count of a request that came to its end, and the time that it took. An engine that reports
// no usage has counted no prompt, and the tokens of its answer are known by their bytes alone.
func (h *habits) learn(a *Ask, t *Tokens, took time.Duration) {
	text := 0.
	switch {
	case a.Exact || a.Bytes < leastBytes || t.Prompt <= 0:
	case a.Media:
		if h.perByte.n > 0 {
			text = h.perByte.is * float64(a.Bytes)
		}
		h.perMedia.add(max(0, float64(t.Prompt)-text))
	default:
		h.perByte.add(float64(t.Prompt) / float64(a.Bytes))
	}
	if a.Answers == 0 || t.Output <= 0 {
		return
	}
	if a.Whole && t.Output >= leastTimed*a.Answers && took > 0 {
		h.speed.add(float64(t.Output) / float64(a.Answers) / took.Seconds())
	}
	allowed := a.Most
	if t.Prompt <= 0 {
		allowed *= far
	}
	if t.Output > allowed || t.Output <= a.Most { // else nobody knows
		h.beyond = a.Most > 0 && t.Output > allowed
	}
	m, each := &h.answers[kindOf(a)], float64(t.Output)/float64(a.Answers)
	if a.Most == 0 || t.Output < a.Most || each > m.is { // else it was cut, and says nothing of an answer that is not
		m.add(each)
	}
}
