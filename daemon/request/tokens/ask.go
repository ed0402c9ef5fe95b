package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/warmpath/warmpath/cache/parts/seldom"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Fleet is the workers that can be asked. It is safe for concurrent use.
type Fleet interface {
	// Askable appends the workers that may be asked and take requests now.
	Askable(of Group, now time.Time, out []Target) []Target
	// Post sends a JSON body to a path at a worker, and returns the status and the answer: no more than limit bytes.
	Post(ctx context.Context, to Target, path string, body []byte, limit int) (status int, answer []byte, err error)
}

// Group is the workers that may be asked for the ids of a text.
type Group struct {
	Model string   // that they serve
	Fence []string // labels, each as name=value, that each of them has: nobody else may see the text
}

// Target is a worker that can be asked.
type Target struct {
	ID, URL  string
	InFlight int // requests that it has now
}

// query is what a worker is asked for.
type query struct {
	render   string // the path of the render; "" = none can be used
	body     []byte // for render
	tokenize []byte // the body for /tokenize; nil = that would not give the request's ids
	of       Group
	group    int // of standings
}

// A text of n bytes has hardly more than n tokens, each with up to 9 bytes in JSON, and a render repeats the text. What
// a chat template adds has its room. A worker that sends more than that lies.
const (
	leastAnswer = 64 << 10
	answerShare = 16       // bytes of an answer for each byte of the question
	maxAnswer   = 24 << 20 // 2 MiB of text are at most as many tokens, each with up to 11 bytes
)

// longestAnswer returns how long the answer to a question may be.
func longestAnswer(body []byte) int { return min(leastAnswer+answerShare*len(body), maxAnswer) }

// mostIDs returns how many ids the answer to a question may have.
func mostIDs(body []byte) int { return leastAnswer/4 + len(body) }

// newQuery copies from a request's body what a worker needs. byTokenize: /tokenize gives its ids too.
func newQuery(q *Question, body []byte, byTokenize bool) *query {
	a := &query{of: Group{q.model, q.Fence}}
	switch q.kind {
	case prompt.Chat:
		a.render = "/v1/chat/completions/render"
	case prompt.Completion:
		a.render = "/v1/completions/render"
	case prompt.Responses:
		a.render, a.group = "/v1/responses/render", 1
	case prompt.Messages:
		a.render, a.group = "/v1/messages/render", 1
	}
	a.body = append([]byte(nil), body...)
	if q.renamed {
		a.render, a.body = "", nil
	}
	if byTokenize {
		a.tokenize = tokenizeBody(q, body)
	}
	return a
}

// tokenizeBody returns the body for /tokenize that has the request's fields.
func tokenizeBody(q *Question, body []byte) []byte {
	name, _ := json.Marshal(q.model)
	b := append(make([]byte, 0, len(body)+64), '{')
	if q.model != "" {
		b = append(append(append(b, `"model":`...), name...), ',')
	}
	prompt.Fields(body, func(name, value []byte) bool {
		field := string(name)
		switch {
		case field == "model" || !shared[field]:
			return true
		case field == promptField(q.kind):
			if q.kind == prompt.Completion && value[0] == '[' { // a list of one
				prompt.Elements(value, func(e []byte) bool {
					value = e
					return true
				})
			}
		case q.kind == prompt.Completion && field != "add_special_tokens":
			return true
		case field == "prompt":
			return true
		}
		b = append(append(append(b, '"'), field...), `":`...)
		b = append(append(b, value...), ',')
		return true
	})
	b[len(b)-1] = '}' // of the last comma: a question has a text
	return b
}

var (
	errRefused = errors.New("tokens: the worker refused the text")
	errNobody  = errors.New("tokens: nobody can be asked")
	errNoWay   = errors.New("tokens: no worker has a render, and /tokenize would not give the request's ids")
)

// isFinal reports whether a question that ended in err would end so again.
func isFinal(err error) bool { return err == errRefused || err == errNoWay || err == errTooLong }

// asker asks workers for ids. It is safe for concurrent use.
type asker struct {
	fleet  Fleet
	log    *slog.Logger
	warned *seldom.Once
	slow   func() time.Duration // the time after which an answer to a short text is late

	standings standings
	maxLens   lengths
	pace      pace
}

// choose returns the worker to ask: of two of those that may be, the one with fewer requests. tried is left out.
func (s *asker) choose(of Group, tried string) (Target, error) {
	now := time.Now()
	all := s.fleet.Askable(of, now, nil)
	for n := len(all); n > 0; n = len(all) {
		i, k := rand.IntN(n), rand.IntN(n)
		if all[k].InFlight < all[i].InFlight {
			i = k
		}
		if all[i].ID != tried && s.standings.breaker(all[i].ID).Lets(now) {
			return all[i], nil
		}
		all[i] = all[n-1]
		all = all[:n-1]
	}
	return Target{}, errNobody
}

// ask returns the ids by a worker's render, else by its /tokenize. A worker that fails is replaced once.
func (s *asker) ask(ctx context.Context, a *query) ([]uint32, error) {
	tried, err := "", error(nil)
	for range 2 {
		to, none := s.choose(a.of, tried)
		if none != nil {
			if err == nil {
				err = none
			}
			return nil, err
		}
		began := time.Now()
		var ids []uint32
		ids, err = s.askAt(ctx, to, a)
		if err == nil || err == errRefused || err == errNoWay {
			s.note(to, nil, len(a.body), time.Since(began))
			return ids, err
		}
		if errors.Is(context.Cause(ctx), errGone) {
			return nil, errGone
		}
		s.note(to, err, len(a.body), time.Since(began))
		tried = to.ID
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// askAt asks one worker.
func (s *asker) askAt(ctx context.Context, to Target, a *query) ([]uint32, error) {
	now := time.Now()
	if a.render != "" && s.standings.rendersAt(to.ID, a.group, now) {
		status, answer, err := s.fleet.Post(ctx, to, a.render, a.body, longestAnswer(a.body))
		switch {
		case err != nil:
			return nil, err
		case status == 200:
			return parseRender(answer, mostIDs(a.body))
		case status == 401 || status == 403 || status == 404 || status == 405 || status == 501:
			s.standings.lacksRender(to.ID, a.group, now)
		case status < 500:
			return nil, errRefused
		default:
			return nil, statusError(status)
		}
	}
	if a.tokenize == nil {
		return nil, errNoWay
	}
	fits, known := s.maxLens.fits(a.of.Model, len(a.tokenize))
	if !known { // the answer to a short text has it
		if _, err := s.tokenize(ctx, to, a.of.Model, tokenizeText(a.of.Model, "a")); err != nil {
			return nil, err
		}
		fits, _ = s.maxLens.fits(a.of.Model, len(a.tokenize))
	}
	if !fits {
		return nil, errTooLong
	}
	return s.tokenize(ctx, to, a.of.Model, a.tokenize)
}

// tokenizeText returns the body for /tokenize of a bare text.
func tokenizeText(model, text string) []byte {
	b, _ := json.Marshal(struct {
		Model  string `json:"model,omitempty"`
		Prompt string `json:"prompt"`
	}{model, text})
	return b
}

// tokenize asks a worker's /tokenize.
func (s *asker) tokenize(ctx context.Context, to Target, model string, body []byte) ([]uint32, error) {
	status, answer, err := s.fleet.Post(ctx, to, "/tokenize", body, longestAnswer(body))
	switch {
	case err != nil:
		return nil, err
	case status == 404 || status == 405:
		return nil, errNoWay
	case status >= 400 && status < 500:
		return nil, errRefused
	case status != 200:
		return nil, statusError(status)
	}
	ids, longest, err := parseTokenize(answer, mostIDs(body))
	if err == nil {
		s.maxLens.learn(model, longest)
	}
	return ids, err
}

// detokenize asks a worker for the text of a token.
func (s *asker) detokenize(ctx context.Context, of Group, id uint32) (text string, err error) {
	to, err := s.choose(of, "")
	if err != nil {
		return "", err
	}
	body, _ := json.Marshal(struct {
		Model  string   `json:"model,omitempty"`
		Tokens []uint32 `json:"tokens"`
	}{of.Model, []uint32{id}})
	status, answer, err := s.fleet.Post(ctx, to, "/detokenize", body, longestAnswer(body))
	switch {
	case err != nil:
		return "", err
	case status >= 500:
		return "", statusError(status)
	case status != 200:
		return "", errNoWay
	}
	var is struct {
		Prompt string `json:"prompt"`
	}
	if json.Unmarshal(answer, &is) != nil {
		return "", errAnswer
	}
	return is.Prompt, nil
}

// note records how a question to a worker ended: err is nil if the worker answered, also with a refusal.
func (s *asker) note(to Target, err error, size int, took time.Duration) {
	if err == nil {
		s.pace.learn(size, took)
		if limit := s.slow(); limit > 0 && took > limit && size < longText {
			err = context.DeadlineExceeded
		}
	}
	b := s.standings.breaker(to.ID)
	if err == nil {
		b.Close(time.Now())
	} else if b.Fail(time.Now()) {
		s.warned.Warn(s.log, "rest:"+to.ID, "a worker does not return prompts' token ids: it is asked less often, and "+
			"requests are routed by their text meanwhile", "worker", to.ID, "error", inWords(err))
	}
}
