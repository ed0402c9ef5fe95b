package exchange

import (
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/tokens"
)

type uncountedIDs struct{}

func (uncountedIDs) Tokens(string, string) {}

// taught asks for a chat whose answer teaches its ids. It returns what the client sees, and whether they were learnt.
func (s *scene) taught() (a answer, learnt bool) {
	s.t.Helper()
	asking := epoch.NewAsking(epoch.Asked{Pool: s.pool.Pool, Clients: s.pool.Clients, Log: slog.New(slog.DiscardHandler), Meter: uncountedIDs{}})
	asking.Configure("", epoch.AskConfig{CacheBytes: 8 << 20, Learn: true})
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	in.Epoch, in.ID = s.epoch, "id-1"
	var all message.Lives
	life := new(message.Life)
	all.Begin(life)
	defer life.Leave()
	e := s.Begin(in, message.Entry{})
	if out := e.Choose(life); out != nil {
		s.t.Fatal(out.Status)
	}
	q := new(tokens.Question)
	q.Read(prompt.Chat, "m", in.Body)
	r := tokens.Request{Question: q, Body: in.Body, Arrived: time.Now()}
	e.lesson = asking.Lesson(r, nil, tokens.Late)
	out := e.Send(life)
	text, _, err := out.Whole(1 << 20)
	_, o := asking.IDs(life, r)
	return answer{status: out.Status, body: string(text), broken: err != nil, by: in.Seen.Worker, in: in}, o == tokens.Cached
}

// events splits a stream.
func events(text string) (all []string) {
	for e := range strings.SplitAfterSeq(text, "\n\n") {
		if e != "" {
			all = append(all, e)
		}
	}
	return all
}

var idLists = regexp.MustCompile(`token_ids":\[[0-9,]*\]`)

// TestIDsInAnswersStayUnseen: recorded streams with ids reach the client like those without: whole, in two reads and
// broken off. The client never sees twice what a worker sent before it broke off.
func TestIDsInAnswersStayUnseen(t *testing.T) {
	recorded, err := os.ReadFile("../tokens/testdata/vllm/0.32.0/chat-stream.sse")
	if err != nil {
		t.Fatal(err)
	}
	text := string(recorded)
	want := idLists.ReplaceAllString(text, `token_ids":null`)
	list := events(text)
	f := func(name, body string, broken, learnt bool, by string, scripts ...[]string) {
		t.Helper()
		a, did := newScene(t, scripts...).taught()
		if a.status != 200 || a.broken != broken || did != learnt || a.by != by || !strings.HasPrefix(a.body, body) {
			t.Errorf("%s: %d by %s, broken %v, learnt %v:\n%s\nwant, by %s:\n%s", name, a.status, a.by, a.broken, did,
				a.body, by, body)
		}
		if !broken && a.body != body {
			t.Errorf("%s: %d bytes; want %d", name, len(a.body), len(body))
		}
	}
	f("in events", want, false, true, "w0", []string{streamed(list...)})
	f("in one", want, false, true, "w0", []string{streamed(text)})
	for _, cut := range []int{1, 5, 200, len(list[0]) - 1, len(list[0]) + 60, len(text) - 1} {
		f("cut", want, false, true, "w0", []string{streamed(text[:cut], pause, text[cut:])})
	}
	begun := idLists.ReplaceAllString(list[0]+list[1], `token_ids":null`)
	f("broken off after output", begun+`data: {"error"`, true, true, "w0", []string{streamed(list[0], list[1], list[2][:90], "cut")})
	f("broken off before output", want, false, true, "w1", []string{streamed(list[0][:90], "cut")}, []string{streamed(list...)})
	packed := strings.Replace(streamed("\x1f\x8b", "cut"), "\r\n", "\r\nContent-Encoding: gzip\r\n", 1)
	f("compressed", "\x1f\x8b", true, false, "w0", []string{packed}) // it goes on as it comes, though it may hold ids
	plain := `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop","token_ids":[1]}],` +
		`"usage":{"prompt_tokens":2,"completion_tokens":1},"prompt_token_ids":[1,2]}`
	f("plain", idLists.ReplaceAllString(plain, `token_ids":null`), false, true, "w0", []string{whole(200, plain)})
	big := strings.Replace(plain, "[1,2]", "["+strings.Repeat("100,", 100_000)+"1]", 1)
	f("plain, large", idLists.ReplaceAllString(big, `token_ids":null`), false, true, "w0", []string{whole(200, big)})
}
