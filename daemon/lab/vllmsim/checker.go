package vllmsim

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// adapterHeader names the model of a request to /invocations.
const adapterHeader = "X-Amzn-SageMaker-Adapter-Identifier"

// The fields that vLLM reads of a request's header.
const (
	rankHeader    = "X-Data-Parallel-Rank"
	sessionLabels = "X-Session-Id"
)

// checker refuses what vLLM refuses, and makes jobs of the rest.
type checker struct {
	cfg   *Config
	ranks *ranks
	pins  *pins
	loras *loras
}

// check refuses what vLLM refuses before it looks at the prompt.
func (c checker) check(r *http.Request, b *body) *apiError {
	if adapter := r.Header.Get(adapterHeader); adapter != "" && r.URL.Path == "/invocations" {
		b.Model = adapter
	}
	if err := c.checkModel(b.Model); err != nil {
		return err
	}
	if b.StreamOptions != nil && !b.Stream {
		return badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	if b.CacheSalt != nil && *b.CacheSalt == "" {
		return badRequest("cache_salt", "Parameter 'cache_salt' must be a non-empty string if provided.")
	}
	if t := b.Temperature; t != nil && *t < 0 {
		v := strconv.FormatFloat(*t, 'f', -1, 64)
		if !strings.Contains(v, ".") {
			v += ".0"
		}
		return badValue("temperature", v, "temperature must be non-negative, got "+v+".")
	}
	if b.N != nil && (*b.N < 1 || *b.N > 128) {
		return badValue("n", strconv.Itoa(*b.N), fmt.Sprintf("n must be from 1 to 128, got %d.", *b.N))
	}
	if rank, ok := rankOf(r); ok && (rank < 0 || rank >= c.cfg.DataParallel) {
		return badRequest("", fmt.Sprintf("data_parallel_rank %d is out of range [0, %d).", rank, c.cfg.DataParallel))
	}
	return nil
}

// rankOf returns the data-parallel rank that a request names.
func rankOf(r *http.Request) (rank int, ok bool) {
	rank, err := strconv.Atoi(r.Header.Get(rankHeader))
	return rank, err == nil
}

func (c checker) checkModel(name string) *apiError {
	if name == "" || slices.Contains(c.cfg.Models, name) || c.loras.has(name) {
		return nil
	}
	return unknownModel(name, strings.Join(c.cfg.Models, ", "))
}

// prepareJob makes the choices of a job whose prompts are known.
func (c checker) prepareJob(r *http.Request, j *job, b *body) *apiError {
	j.model = c.cfg.Models[0]
	if c.loras.has(b.Model) {
		j.model = b.Model
	}
	j.created = time.Now().Unix()
	j.stream = b.Stream
	j.tokenIDs = b.ReturnIDs
	j.id += requestID(r, b)
	j.notify = make(chan struct{}, 1)
	j.callSeed = rand.Uint64()
	j.n = 1
	if b.N != nil {
		j.n = *b.N
	}
	if payload := payloadOf(r); payload != nil {
		for i := range j.prompts {
			j.prompts[i] = slices.Concat(payload, j.prompts[i])
		}
	}
	for _, ids := range j.prompts {
		limit, err := c.limit(len(ids), b)
		if err != nil {
			return err
		}
		for i := range j.n {
			ch := c.newChoice(j, ids, i, limit, b)
			ch.seq.Session = sessionLabel(r, b)
			j.choices = append(j.choices, ch)
		}
	}
	if rank, ok := rankOf(r); ok {
		j.driver = c.ranks.drivers[rank]
	} else {
		j.driver = c.ranks.leastLoaded()
	}
	return nil
}

// newChoice makes choice i of a prompt, whose reply has so many tokens at most.
func (c checker) newChoice(j *job, ids []uint32, i, limit int, b *body) *choice {
	salt := ""
	if b.CacheSalt != nil {
		salt = *b.CacheSalt
	}
	adapter := ""
	if j.model != c.cfg.Models[0] {
		adapter = j.model
		salt = "lora:" + adapter + "\x00" + salt
	}
	seed := engine.Mix(c.cfg.Seed^b.Seed, uint64(i))
	ch := &choice{seq: engine.NewSequence(ids, salt, seed, c.cfg.BlockTokens), notify: j.notify}
	q := &ch.seq
	switch {
	case j.replyAt > 0:
		q.ContinueFrom(j.replyAt, seed)
	case j.completes && j.text != "":
		q.ContinueText(j.text, seed)
	case j.completes:
		q.ContinueIDs(seed)
	}
	q.Owner = ch
	q.Adapter = adapter
	q.MaxTokens = limit
	q.Recompute = b.recomputes()
	q.Report = b.Args.Report == "full"
	if j.fixed != "" {
		q.Reply = engine.FixedReply(j.fixed)
	} else if (j.softLimit || b.MaxTokens == nil && b.MaxCompletion == nil) && !b.IgnoreEOS {
		q.Reply = q.Reply.EndingNear(c.cfg.ReplyTokens, b.MinTokens)
	}
	return ch
}

// sessionLabel returns the label that the KV events of a request carry.
func sessionLabel(r *http.Request, b *body) string {
	return cmp.Or(r.Header.Get(sessionLabels), b.Session, b.Args.Session)
}

func requestID(r *http.Request, b *body) string {
	if id := r.Header.Get("X-Request-Id"); id != "" {
		return id
	}
	if b.RequestID != "" {
		return b.RequestID
	}
	return newID()
}

// limit returns how long the reply may be. A stated max_tokens is used up: a simulated reply has no end of its own
// then.
func (c checker) limit(prompt int, b *body) (int, *apiError) {
	window := c.cfg.MaxModelLen
	if prompt >= window {
		return 0, tooLong(prompt, fmt.Sprintf("This model's maximum context length is %d tokens. However, your prompt "+
			"contains %d input tokens, which exceeds this limit even without any output tokens. "+
			"Please reduce the length of the input prompt.", window, prompt))
	}
	limit, name := b.MaxTokens, "max_tokens"
	if b.MaxCompletion != nil {
		limit, name = b.MaxCompletion, "max_completion_tokens"
	}
	switch {
	case limit == nil:
		return window - prompt, nil
	case *limit < 1:
		return 0, badValue(name, strconv.Itoa(*limit), fmt.Sprintf("max_tokens must be at least 1, got %d.", *limit))
	case *limit > window:
		return 0, badValue(name, strconv.Itoa(*limit), fmt.Sprintf("%s=%d cannot be greater than max_model_len=%d. "+
			"Please request fewer output tokens.", name, *limit, window))
	case prompt+*limit > window:
		return 0, tooLong(prompt, fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested "+
			"%d output tokens and your prompt contains %d input tokens, for a total of %d tokens. "+
			"Please reduce the length of the input prompt or the number of requested output tokens.",
			window, *limit, prompt, prompt+*limit))
	}
	return *limit, nil
}

func tooLong(prompt int, message string) *apiError {
	return badValue("input_tokens", strconv.Itoa(prompt), message)
}

// parsePlain reads the body of an endpoint without an engine and checks its model. It returns false if it has answered.
func (c checker) parsePlain(w http.ResponseWriter, r *http.Request, into any, model *string, refuse refuser) bool {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	refused := parse(r, raw, into)
	if refused == nil {
		refused = c.checkModel(*model)
	}
	if refused != nil {
		refuse(w, refused)
		return false
	}
	return true
}
