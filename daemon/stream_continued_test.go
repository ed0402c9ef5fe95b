package daemon

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// continuable are the endpoints whose streams another worker goes on with, with a body for each prompt of n tokens.
var continuable = []struct {
	path string
	body func(prompt string, n int) string
}{
	{"/v1/chat/completions", func(p string, n int) string {
		return fmt.Sprintf(`{"model":"sim","stream":true,"temperature":0,"max_tokens":%d,"stream_options":{"include_usage":true},`+
			`"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":%q}]}`, n, p)
	}},
	{"/v1/completions", func(p string, n int) string {
		return fmt.Sprintf(`{"model":"sim","stream":true,"temperature":0,"max_tokens":%d,"stream_options":{"include_usage":true},`+
			`"prompt":%q}`, n, p)
	}},
	{"/v1/responses", func(p string, n int) string {
		return fmt.Sprintf(`{"model":"sim","stream":true,"temperature":0,"max_output_tokens":%d,"input":%q}`, n, p)
	}},
	{"/v1/messages", func(p string, n int) string {
		return fmt.Sprintf(`{"model":"sim","stream":true,"temperature":0,"max_tokens":%d,"system":"Be brief.",`+
			`"messages":[{"role":"user","content":%q}]}`, n, p)
	}},
}

// gotten is what a client understands of a stream.
type gotten struct {
	text          string
	ended         string // why
	roles, starts int
	ids           map[string]bool
	prompt, out   int
	comments      int
}

// event adds one event to the stream, or says what is wrong with it.
func (s *gotten) event(number *int, data string) error {
	if data == "[DONE]" {
		return nil
	}
	var e struct {
		ID, Type string
		Error    any
		Choices  []struct {
			Text   string
			Delta  struct{ Role, Content string }
			Finish string `json:"finish_reason"`
		}
		Usage    map[string]any
		Message  struct{ ID string }
		Index    *int
		Delta    json.RawMessage
		Number   *int   `json:"sequence_number"`
		Output   *int   `json:"output_index"`
		Part     *int   `json:"content_index"`
		Item     string `json:"item_id"`
		Text     string
		Response struct {
			ID, Status string
			Usage      map[string]any
			Max        int `json:"max_output_tokens"`
			Output     []struct {
				ID      string
				Content []struct{ Text string }
			}
		}
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("%w: %s", err, data)
	}
	if e.Error != nil || e.Type == "error" {
		return errors.New(data)
	}
	for _, id := range []string{e.ID, e.Message.ID, e.Response.ID, e.Item} {
		if id != "" {
			s.ids[id] = true
		}
	}
	if e.Number != nil {
		if *e.Number != *number {
			return fmt.Errorf("event %d comes as the number %d: %s", *e.Number, *number, data)
		}
		*number++
	}
	for _, c := range e.Choices {
		s.text += c.Text + c.Delta.Content
		if c.Delta.Role != "" {
			s.roles++
		}
		s.ended += c.Finish
	}
	count := func(u map[string]any) {
		for _, k := range []string{"prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
			n, _ := u[k].(float64)
			s.prompt += int(n)
		}
		for _, k := range []string{"completion_tokens", "output_tokens"} {
			n, _ := u[k].(float64)
			s.out += int(n)
		}
	}
	count(e.Usage)
	var delta struct {
		Text string
		Stop string `json:"stop_reason"`
	}
	switch e.Type {
	case "message_start", "content_block_start", "response.created", "response.output_item.added", "response.content_part.added":
		s.starts++
	case "content_block_delta", "message_delta":
		_ = json.Unmarshal(e.Delta, &delta)
		s.text += delta.Text
		s.ended += delta.Stop
		if e.Index != nil && *e.Index != 0 {
			return errors.New(data)
		}
	case "response.output_text.delta":
		var text string
		_ = json.Unmarshal(e.Delta, &text)
		s.text += text
	case "response.output_text.done":
		if e.Text != s.text {
			return fmt.Errorf("done with %q; the deltas are %q", e.Text, s.text)
		}
	case "response.completed":
		s.ended += e.Response.Status
		count(e.Response.Usage)
		s.ids[e.Response.Output[0].ID] = true
		if got := e.Response.Output[0].Content[0].Text; got != s.text {
			return fmt.Errorf("completed with %q; the deltas are %q", got, s.text)
		}
	}
	return nil
}

// readGotten sends a request and reads the stream that comes. each is called with what came so far; it may be nil.
func readGotten(url, path, body string, each func(*gotten)) (s gotten, err error) {
	s.ids = map[string]bool{}
	resp, err := http.Post(url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		text, _ := io.ReadAll(resp.Body)
		return s, fmt.Errorf("%s: %s", resp.Status, text)
	}
	lines, number := bufio.NewScanner(resp.Body), 0
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), ":") {
			s.comments++
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := s.event(&number, data); err != nil {
				return s, err
			}
			if each != nil {
				each(&s)
			}
		}
	}
	return s, lines.Err()
}

// TestContinuedStreams: of four workers one dies under 200 streams of each endpoint. Each client gets one whole answer,
// with the text and the counts of an undisturbed one.
func TestContinuedStreams(t *testing.T) {
	t.Parallel()
	const streams, length = 200, 150
	sim := vllmsim.Config{ReplyTokens: 4000, Speed: 1000}
	calm := sims(t, 1, sim)[0].URL()
	for _, at := range continuable {
		t.Run(at.path, func(t *testing.T) {
			sim.Speed = 1
			workers := sims(t, 4, sim)
			log := filepath.Join(t.TempDir(), "access.log")
			r := start(t, withServer(strings.Replace(settings("roundrobin", workers.URLs()...), "health_interval",
				"continue = 1\nhealth_interval", 1), fmt.Sprintf("access_log = %q", log)), 4)
			var begun, all sync.WaitGroup
			begun.Add(streams)
			got, errs := make([]gotten, streams), make([]error, streams)
			bodies := make([]string, streams)
			for i := range streams {
				bodies[i] = at.body(fmt.Sprintf("Question %d: what is the tide?", i), length)
				all.Go(func() {
					once := sync.OnceFunc(begun.Done)
					defer once()
					got[i], errs[i] = readGotten("http://"+r.Addr(), at.path, bodies[i], func(s *gotten) {
						if len(s.text) > 4*(2+i%20) {
							once()
						}
					})
				})
			}
			begun.Wait()
			_ = workers[1].Kill()
			all.Wait()
			alike, bad := 0, 0
			for i := range streams {
				want, err := readGotten(calm, at.path, bodies[i], nil)
				if err != nil {
					t.Fatal(err)
				}
				g := &got[i]
				if errs[i] == nil && g.text != want.text && bad < 3 {
					t.Errorf("%d:\n%s\n%s", i, g.text, want.text)
				}
				if errs[i] != nil || g.ended != want.ended || g.roles != want.roles || g.starts != want.starts ||
					len(g.ids) != len(want.ids) || g.prompt != want.prompt || g.out != want.out {
					bad++
					if bad < 3 {
						t.Errorf("%d: %v %+v; want %+v", i, errs[i], *g, want)
					}
				}
				if g.text == want.text {
					alike++
				}
			}
			if alike < streams*99/100 {
				t.Errorf("%d of %d texts are those of undisturbed answers", alike, streams)
			}
			eventually(t, "the lines", func() bool { return len(logged(t, log)) == streams })
			continued := 0
			for _, line := range logged(t, log) {
				if line["end"] == "continued" {
					continued++
					if tried, _ := line["tried"].([]any); len(tried) == 0 || line["worker"] == "w2" {
						t.Errorf("a continued stream has the line %v", line)
					}
				}
			}
			if n := r.metric("warmpath_continuations_total", `result="done"`); int(n) != continued || continued < streams/8 {
				t.Errorf("%v continuations are counted, and %d logged", n, continued)
			}
			if n := r.metric("warmpath_account_leaks_total"); n != 0 {
				t.Errorf("%v leaks", n)
			}
			eventually(t, "no request at a worker", func() bool { return r.metric("warmpath_worker_in_flight") == 0 })
		})
	}
}
