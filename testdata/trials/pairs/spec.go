package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

const (
	fieldPlay      = "X-Play" // the request's number, which passes to the workers
	fieldPrefiller = "x-prefiller-host-port"
	keyRoom        = "bootstrap_room"
	smuggled       = "smuggled.example" // what a client may not name to a worker
)

// spec is one request, and what befalls it.
type spec struct {
	n      int
	path   string
	body   string
	head   []string      // fields
	stays  bool          // the client waits for its answer
	leaves time.Duration // else it leaves after so long
	alone  bool          // a worker without roles accepts it

	sent  atomic.Int64 // when, in ns
	play  [2][]string  // what the calls of each side do; those after them are well
	calls [2]atomic.Int32
}

// next returns what the next call of a side does, "" = it is well.
func (s *spec) next(of side) string {
	if n := int(s.calls[of].Add(1)) - 1; n < len(s.play[of]) {
		return s.play[of][n]
	}
	return ""
}

// request is its bytes.
func (s *spec) request() []byte {
	return wire.Request("POST", s.path, s.body, append(s.head, "Content-Type: application/json",
		fmt.Sprintf("%s: %d", fieldPlay, s.n))...)
}

// The faults of calls, and how often each is played in a hundred. A call that hangs costs header_timeout.
var faults = [2][]struct {
	name string
	of   int
}{
	prefills: {{"500", 3}, {"503", 2}, {"429", 2}, {"reset", 2}, {"slow", 3}, {"cut", 1}, {"error", 2}, {"event", 1},
		{"hang", 1}},
	decodes: {{"500", 2}, {"503", 3}, {"429", 3}, {"reset", 2}, {"slow", 2}, {"cut", 2}, {"error", 1}, {"event", 2},
		{"late", 2}, {"lost", 2}, {"hang", 1}},
}

// dice draws what a request is.
type dice struct{ *rand.Rand }

func diceOf(seed uint64, n int, of uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, uint64(n)<<8|of))}
}

// in reports true in so many of a hundred.
func (d dice) in(hundred int) bool { return d.IntN(100) < hundred }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// fault draws the fault of a call.
func (d dice) fault(of side) string {
	at := d.IntN(100)
	for _, f := range faults[of] {
		at -= f.of
		if at < 0 {
			return f.name
		}
	}
	return ""
}

// draw makes it the request of a number.
func (s *spec) draw(seed uint64, n int, e *front, adapters bool) {
	d := diceOf(seed, n, 1)
	s.n = n
	s.path = pick(d, pathChat, pathChat, pathChat, pathChat, pathCompletion, pathCompletion, pathCompletion, pathResponses,
		pathResponses, pathMessages, pathMessages, pathGenerate)
	if d.in(2) {
		s.path = pathCount
	}
	s.body = newBody(d, seed, n, s.path, adapters)
	s.alone = e.refuses(s.path, []byte(s.body)) == ""
	s.stays = !d.in(15)
	if !s.stays {
		s.leaves = time.Duration(d.Int64N(int64(300 * time.Millisecond)))
	}
	s.head = []string{"Authorization: Bearer " + pick(d, keyPlain, keyPlain, keySalted, keySalted, keyLimited)}
	switch {
	case d.in(12): // as clients that number their requests from 0
		s.head = append(s.head, fmt.Sprintf("X-Request-Id: bench-%d", d.IntN(3)))
	case d.in(40):
		s.head = append(s.head, fmt.Sprintf("X-Request-Id: of-%d", n))
	}
	if d.in(3) {
		s.head = append(s.head, pick(d, fieldPrefiller, "x-prefiller-url", "x-llm-d-prefiller-host-port",
			"x-encoder-hosts-ports")+": "+smuggled+":1")
	}
	if d.in(10) {
		s.head = append(s.head, fmt.Sprintf("X-Session-Id: s%d", d.IntN(20)))
	}
	for of := range s.play {
		for range 1 + d.IntN(3) {
			s.play[of] = append(s.play[of], d.fault(side(of)))
		}
	}
}

// list is the fields of a body, in some order.
type list []string

func (l *list) add(name string, value any) { *l = append(*l, fmt.Sprintf("%q:%v", name, value)) }

// maybe adds a field in so many of a hundred.
func (l *list) maybe(d dice, hundred int, name string, value any) {
	if d.in(hundred) {
		l.add(name, value)
	}
}

// newBody draws the body of a request.
func newBody(d dice, seed uint64, n int, path string, adapters bool) string {
	text, more := textOf(seed, n), ""
	if d.in(20) && n > 60 { // a conversation that goes on
		text, more = textOf(seed, n-1-d.IntN(60)), fmt.Sprintf(" and then %d", n)
	}
	var l list
	model := "sim"
	if adapters && d.in(6) {
		model = fmt.Sprintf("tune-%d", d.IntN(6))
	}
	l.add("model", fmt.Sprintf("%q", model))
	l.prompt(d, path, text+more, n)
	l.limits(d, path)
	l.maybe(d, 30, "temperature", pick(d, "0.5", "0", "1"))
	if path != pathGenerate && path != pathCount {
		stream := pick(d, "true", "false")
		l.add("stream", stream)
		if path != pathMessages && path != pathResponses && stream == "true" {
			l.maybe(d, 40, "stream_options", `{"include_usage":true}`)
		}
	}
	l.odd(d, path)
	d.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
	between := pick(d, ",", ", ", ",\n  ")
	return "{" + strings.Join(l, between) + pick(d, "}", "}\n", " }")
}

// prompt adds the prompt.
func (l *list) prompt(d dice, path, text string, n int) {
	switch path {
	case pathChat:
		content := fmt.Sprintf("%q", text)
		if d.in(20) {
			content = fmt.Sprintf(`[{"type":"text","text":%q}]`, text)
		}
		l.add("messages", fmt.Sprintf(`[{"role":"system","content":"Be brief. %d"},{"role":"user","content":%s}]`, n%7,
			content))
	case pathCompletion:
		switch {
		case d.in(6):
			l.add("prompt", fmt.Sprintf("[%q, %q]", text, text+" once more"))
		case d.in(10):
			l.add("prompt", ids(d, n))
		default:
			l.add("prompt", fmt.Sprintf("%q", text))
		}
	case pathResponses:
		l.maybe(d, 40, "instructions", `"Be brief."`)
		if d.in(50) {
			l.add("input", fmt.Sprintf("%q", text))
		} else {
			l.add("input", fmt.Sprintf(`[{"role":"user","content":%q}]`, text))
		}
		l.maybe(d, 40, "store", pick(d, "true", "false"))
		if n > 100 {
			l.maybe(d, 8, "previous_response_id", fmt.Sprintf(`"resp_%d"`, n-50-d.IntN(50)))
		}
		l.maybe(d, 8, "truncation", `"auto"`)
	case pathMessages, pathCount:
		l.maybe(d, 40, "system", `"Be brief."`)
		l.add("messages", fmt.Sprintf(`[{"role":"user","content":%q}]`, text))
	case pathGenerate:
		l.add("token_ids", ids(d, n))
	}
}

// ids is a prompt as numbers.
func ids(d dice, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d", n)
	for range 20 + d.IntN(1500) {
		fmt.Fprintf(&b, ",%d", d.IntN(30000))
	}
	return b.String() + "]"
}

// limits adds what bounds the answer.
func (l *list) limits(d dice, path string) {
	most := 1 + d.IntN(64)
	switch {
	case d.in(2):
		most = 100_000
	case d.in(2):
		most = 1500 // more than a long prompt leaves
	}
	switch path {
	case pathGenerate:
		l.add("sampling_params", fmt.Sprintf(`{"max_tokens":%d,"temperature":0}`, most))
	case pathCount:
	case pathMessages:
		l.add("max_tokens", most)
		if d.in(15) {
			l.add("thinking", pick(d, fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, max(1, most/2)),
				`{"type":"disabled"}`))
		}
	default:
		of := limits(path)
		l.maybe(d, 80, of[len(of)-1], most)
		if len(of) > 1 {
			l.maybe(d, 15, of[0], most)
		}
		l.maybe(d, 8, "min_tokens", 1+d.IntN(most))
	}
}

// odd adds what few requests have.
func (l *list) odd(d dice, path string) {
	if path == pathGenerate || path == pathCount {
		l.maybe(d, 4, keyParams, theirs(d))
		return
	}
	l.maybe(d, 8, "cache_salt", `"salt of a client"`)
	l.maybe(d, 5, keyParams, theirs(d))
	l.maybe(d, 2, "vllm_xargs", `{"kv_transfer_params":`+theirs(d)+`,"a":1}`)
	if d.in(3) {
		l.add("bootstrap_host", `"`+smuggled+`"`)
		l.add("bootstrap_port", "1")
		l.add(keyRoom, "7")
	}
	if path == pathChat || path == pathCompletion {
		l.maybe(d, 5, "n", "2")
		l.maybe(d, 3, "prompt_logprobs", pick(d, "0", "1"))
		l.maybe(d, 6, "truncate_prompt_tokens", pick(d, "-1", "-1", "100"))
		l.maybe(d, 5, "ignore_eos", "true")
		l.maybe(d, 5, "stop_token_ids", "[3,4]")
		l.maybe(d, 2, "max_tokens", "7") // perhaps a second one
		l.maybe(d, 1, "stream_options", "null")
		l.maybe(d, 1, "use_beam_search", "false")
	}
	l.maybe(d, 1, "cache_salt", `""`)
	l.maybe(d, 5, "user", `"u1"`)
}

// theirs are the kv_transfer_params of a client.
func theirs(d dice) string {
	return pick(d, "null", "{}", `"`+smuggled+`"`, `{"do_remote_decode":true,"by":"`+smuggled+`"}`,
		`{"by":1,"do_remote_prefill":true,"do_remote_decode":false,"remote_engine_id":"`+smuggled+`",`+
			`"remote_request_id":"x","remote_block_ids":[[0]],"remote_host":"x","remote_port":1,"transfer_id":"x"}`)
}

var words = strings.Fields("alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho " +
	"sigma tau upsilon phi chi psi omega kv_transfer_params stream max_tokens \u00e9t\u00e9")

// textOf is the text of the request of a number.
func textOf(seed uint64, n int) string {
	d := diceOf(seed, n, 2)
	count := 5 + d.IntN(60)
	switch at := d.IntN(100); {
	case at < 50:
		count = 150 + d.IntN(1200)
	case at < 62:
		count = 1400 + d.IntN(2400)
	case at < 64:
		count = 4000 + d.IntN(400) // about what the context holds
	}
	var b strings.Builder
	fmt.Fprintf(&b, "r%d", n)
	for range count {
		b.WriteByte(' ')
		b.WriteString(words[d.IntN(len(words))])
	}
	if d.in(4) { // one long word, as an image is
		b.WriteByte(' ')
		b.WriteString(strings.Repeat("QUJD", 17_000+d.IntN(8000)))
	}
	return b.String()
}
