package vllmsim

import (
	"strconv"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// systemFingerprint is what usage-bearing answers carry, with the weights behind it: see job.fingerprint. The second
// half is a hash of the configuration in vLLM.
const systemFingerprint = "vllm-" + Version + "-51300000"

// job is one inference request on its way through the engine.
type job struct {
	id       string
	model    string
	created  int64
	chat     bool // not a completion
	sglang   bool // the answer has SGLang's form
	stream   bool
	tokenIDs bool // the answer lists them

	prompts [][]uint32

	// Where the reply has begun in the prompt already:
	replyAt   int    // it does behind so many tokens; 0 = nowhere
	completes bool   // it may anywhere
	text      string // the prompt, if it is one text

	n       int       // choices of each prompt
	choices []*choice // prompt by prompt
	driver  *driver   // of the rank that they run on, all of them on one
	notify  chan struct{}

	unloaded *apiError // its KV is not where its parameters say: it ends with this; nil = it is

	fixed     string // what the reply must be, "" for anything
	softLimit bool   // max_tokens bounds the reply, which has an end of its own
	tool      string // the function that the reply calls, "" for none
	callSeed  uint64 // of the call's id
}

// callTool makes the replies a call of f.
func (j *job) callTool(f *toolFunction) {
	j.tool = f.Name
	j.fixed = sampleOf(f.Parameters)
}

// callID returns the id of choice i's call. It follows from the job, so a stream need not remember it.
func (j *job) callID(i int) string {
	return "chatcmpl-tool-" + strconv.FormatUint(engine.Mix(j.callSeed, uint64(i)), 16)
}

// finishReason returns finish_reason: a call of a tool ends with its own.
func (j *job) finishReason(end engine.Finish) string {
	if j.tool != "" && end == engine.FinishStop {
		return "tool_calls"
	}
	return end.String()
}

// ended reports whether every choice has ended.
func (j *job) ended() bool {
	for _, c := range j.choices {
		if c.finish() == engine.Unfinished {
			return false
		}
	}
	return true
}

// aborted reports whether the request ended before its first token: vLLM then sends a bare [DONE].
func (j *job) aborted() bool {
	for _, c := range j.choices {
		if c.finish() != engine.FinishAbort || c.tokens() > 0 {
			return false
		}
	}
	return true
}

// cacheUse returns the number of prompt tokens found cached, and of those in full blocks that were made.
func (j *job) cacheUse() (cached, created int) {
	for i := 0; i < len(j.choices); i += j.n {
		c := j.choices[i]
		hit := int(c.cached.Load())
		cached += hit
		created += c.seq.PromptTokens()/engine.BlockTokens*engine.BlockTokens - hit
	}
	return cached, created
}

// appendPromptIDs appends the ids of a prompt, or null where they were not asked for.
func (j *job) appendPromptIDs(b []byte, prompt int) []byte {
	if !j.tokenIDs {
		return append(b, "null"...)
	}
	ids := j.prompts[prompt]
	return appendIDs(b, len(ids), func(i int) uint32 { return ids[i] })
}

// appendReplyIDs appends the ids of tokens [from, to) of a reply, or null.
func (j *job) appendReplyIDs(b []byte, c *choice, from, to int) []byte {
	if !j.tokenIDs {
		return append(b, "null"...)
	}
	return appendIDs(b, to-from, func(i int) uint32 { return c.seq.Reply.Token(from + i) })
}

// fingerprint returns the answer's system_fingerprint as it stands within a JSON string: with the versions of the
// weights that computed the first choice, and the tokens of prompts that came from blocks of other weights.
func (j *job) fingerprint() string {
	s := systemFingerprint
	if j.driver == nil {
		return s
	}
	c := j.choices[0]
	if first, last := j.driver.versions(c.weights[0].Load(), c.weights[1].Load()); last != "" {
		if first != last {
			last = first + "-" + last
		}
		quoted := appendQuoted(nil, last) // the form puts quotes around all of it
		s += "-weights-" + string(quoted[1:len(quoted)-1])
	}
	stale := 0
	for _, c := range j.choices {
		stale += int(c.stale.Load())
	}
	if stale > 0 {
		s += "-stale-" + strconv.Itoa(stale)
	}
	return s
}
