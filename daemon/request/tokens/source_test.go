package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// asked is a request that a fleet got.
type asked struct{ worker, path, body string }

// fleet answers what its function returns.
type fleet struct {
	workers []Target
	answer  func(ctx context.Context, a asked) (int, string, error)

	mu  sync.Mutex // guards got
	got []asked
}

func (f *fleet) Askable(_ Group, _ time.Time, out []Target) []Target {
	return append(out, f.workers...)
}

func (f *fleet) Post(ctx context.Context, to Target, path string, body []byte, _ int) (int, []byte, error) {
	a := asked{worker: to.ID, path: path, body: string(body)}
	f.mu.Lock()
	f.got = append(f.got, a)
	f.mu.Unlock()
	status, answer, err := f.answer(ctx, a)
	return status, []byte(answer), err
}

func (f *fleet) paths() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.got {
		all = append(all, a.path)
	}
	return all
}

type tally struct {
	mu sync.Mutex // guards n
	n  map[Outcome]int
}

func (t *tally) Tokens(_, outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[Outcome]int{}
	}
	t.n[Outcome(outcome)]++
}

// scene is a Source of two workers.
type scene struct {
	*Source
	t     *testing.T
	fleet *fleet
	log   *strings.Builder
	tally *tally
}

func newScene(t *testing.T, answer func(ctx context.Context, a asked) (int, string, error)) *scene {
	f := &fleet{workers: []Target{{ID: "a"}, {ID: "b"}}, answer: answer}
	s := &scene{t: t, fleet: f, log: new(strings.Builder), tally: new(tally)}
	s.Source = New(Parts{Pool: "p", Log: slog.New(slog.NewTextHandler(s.log, nil)), Meter: s.tally, Fleet: f})
	s.Configure(Config{Budget: 50 * time.Millisecond, CacheBytes: 1 << 20, Learn: true})
	return s
}

func read(kind prompt.Kind, body string) *Question {
	q := new(Question)
	var b struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal([]byte(body), &b)
	q.Read(kind, b.Model, []byte(body))
	return q
}

func (s *scene) ids(ctx context.Context, kind prompt.Kind, body string) ([]uint32, Outcome) {
	return s.IDs(ctx, Request{Question: read(kind, body), Body: []byte(body), Arrived: time.Now()})
}

// renderless answers /tokenize with ids and has no render.
func renderless(ids string) func(context.Context, asked) (int, string, error) {
	return func(_ context.Context, a asked) (int, string, error) {
		if a.path != "/tokenize" {
			return 403, `{"error":{}}`, nil
		}
		return 200, fmt.Sprintf(`{"count":%d,"max_model_len":4096,"tokens":%s,"token_strs":null}`,
			strings.Count(ids, ",")+1, ids), nil
	}
}

const hello = `{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":1}`

// exchanged is a recorded request with its answer.
type exchanged struct {
	Request struct {
		Path string          `json:"path"`
		Body json.RawMessage `json:"body"`
	} `json:"request"`
	Status string          `json:"status"`
	Reply  json.RawMessage `json:"reply"`
}

func recorded(t *testing.T, version, file string) (all []exchanged) {
	t.Helper()
	b, err := os.ReadFile("testdata/vllm/" + version + "/" + file)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var versions = []string{"0.11.1", "0.19.1", "0.32.0"}

// A recorded worker is asked as the requests were recorded, and its answers are the ids that it then reports for the
// chat itself.
func TestRecordedWorkersGiveTheirIDs(t *testing.T) {
	for _, v := range versions {
		t.Run(v, func(t *testing.T) {
			all := append(recorded(t, v, "tokenize.json"), recorded(t, v, "render.json")...)
			s := newScene(t, func(_ context.Context, a asked) (int, string, error) {
				for _, r := range all {
					if r.Request.Path == a.path && sameJSON(t, r.Request.Body, []byte(a.body)) {
						var status int
						_, err := fmt.Sscanf(r.Status, "HTTP/1.1 %d", &status)
						return status, string(r.Reply), err
					}
				}
				return 404, `{"detail":"Not Found"}`, nil
			})
			for _, r := range recorded(t, v, "return-token-ids.json") {
				var reply struct {
					Prompt  []uint32 `json:"prompt_token_ids"`
					Choices []struct {
						Prompt []uint32 `json:"prompt_token_ids"`
					} `json:"choices"`
				}
				if err := json.Unmarshal(r.Reply, &reply); err != nil {
					t.Fatal(err)
				}
				want := append(reply.Prompt, reply.Choices[0].Prompt...)
				if string(r.Request.Path) == "/v1/completions" {
					continue // another text than those recorded for /tokenize
				}
				got, o := s.ids(t.Context(), prompt.Chat, string(r.Request.Body))
				if o != Asked || !slices.Equal(got, want) {
					t.Errorf("%s: %s, %v; the worker reported %v", r.Request.Path, o, got, want)
				}
			}
		})
	}
}

// sameJSON compares two bodies without the fields that only sampling reads.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	trees := [2]map[string]any{}
	for i, text := range [][]byte{a, b} {
		if err := json.Unmarshal(text, &trees[i]); err != nil {
			t.Fatal(err)
		}
		for name := range idle {
			delete(trees[i], name)
		}
	}
	return fmt.Sprint(trees[0]) == fmt.Sprint(trees[1])
}

func TestRenderIsProbedOncePerWorker(t *testing.T) {
	s := newScene(t, renderless("[1,2,3]"))
	s.fleet.workers = s.fleet.workers[:1]
	for i := range 3 {
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}]}`, i)
		if ids, o := s.ids(t.Context(), prompt.Chat, body); o != Asked || !slices.Equal(ids, []uint32{1, 2, 3}) {
			t.Fatal(ids, o)
		}
	}
	want := []string{"/v1/chat/completions/render", "/tokenize", "/tokenize", "/tokenize"}
	if got := s.fleet.paths(); !slices.Equal(got, want) {
		t.Errorf("asked %q; want %q", got, want)
	}
}

// Requests with one text share one question.
func TestOneQuestionForOneText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(_ context.Context, a asked) (int, string, error) {
			time.Sleep(10 * time.Millisecond)
			return renderless("[7]")(t.Context(), a)
		})
		s.fleet.workers = s.fleet.workers[:1]
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if ids, o := s.ids(t.Context(), prompt.Chat, hello); o != Asked || !slices.Equal(ids, []uint32{7}) {
					t.Error(ids, o)
				}
			})
		}
		all.Wait()
		if _, o := s.ids(t.Context(), prompt.Chat, hello); o != Cached {
			t.Error(o)
		}
		if got := len(s.fleet.paths()); got != 2 {
			t.Errorf("%d requests at workers; want a render that is not there and one /tokenize", got)
		}
		if s.tally.n[Asked] != 20 || s.tally.n[Cached] != 1 {
			t.Errorf("counted %v", s.tally.n)
		}
	})
}

// What is not there within the budget is late, and there for the next request.
func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(_ context.Context, a asked) (int, string, error) {
			if a.path == "/tokenize" {
				time.Sleep(80 * time.Millisecond)
			}
			return renderless("[7]")(t.Context(), a)
		})
		f := func(want Outcome, took, before time.Duration, deadline time.Time) {
			t.Helper()
			began := time.Now()
			_, o := s.IDs(t.Context(), Request{Question: read(prompt.Chat, hello), Body: []byte(hello),
				Arrived: began.Add(-before), Deadline: deadline})
			if o != want || time.Since(began) != took {
				t.Errorf("%s after %v; want %s after %v", o, time.Since(began), want, took)
			}
		}
		f(Late, 0, 60*time.Millisecond, time.Time{})
		f(Late, 10*time.Millisecond, 0, time.Now().Add(10*time.Millisecond))
		f(Late, 50*time.Millisecond, 0, time.Time{})
		f(Asked, 20*time.Millisecond, 0, time.Time{})
		f(Cached, 0, 0, time.Time{})
		if n := strings.Count(s.log.String(), "pools.tokens.budget"); n != 1 {
			t.Errorf("%d lines say it; want one:\n%s", n, s.log)
		}
	})
}

// The last client that leaves ends the question.
func TestClientsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		s := newScene(t, func(ctx context.Context, a asked) (int, string, error) {
			<-ctx.Done()
			ended = true
			return 0, "", ctx.Err()
		})
		ctx, leave := context.WithCancel(t.Context())
		go func() {
			time.Sleep(5 * time.Millisecond)
			leave()
		}()
		if _, o := s.ids(ctx, prompt.Chat, hello); o != Gone {
			t.Error(o)
		}
		synctest.Wait()
		if !ended || s.asked != 0 || len(s.flights) != 0 {
			t.Errorf("the worker's request ended: %v; %d asked, %d flights", ended, s.asked, len(s.flights))
		}
		for id, w := range s.asker.standings.of {
			for range rests.Failures - 1 {
				w.breaker.Fail(time.Now())
			}
			if w.breaker.Open() {
				t.Errorf("worker %s is blamed for its client", id)
			}
		}
	})
}

func TestSilentWorkersAreNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, func(ctx context.Context, a asked) (int, string, error) {
			<-ctx.Done()
			return 0, "", ctx.Err()
		})
		late := 0
		for i := range 200 {
			body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}]}`, i)
			began := time.Now()
			_, o := s.ids(t.Context(), prompt.Chat, body)
			if time.Since(began) > 50*time.Millisecond {
				t.Fatalf("waited for %v", time.Since(began))
			}
			if o == Late {
				late++
			}
			time.Sleep(50 * time.Millisecond)
		}
		if late > 100 || s.tally.n[Nobody] == 0 {
			t.Errorf("%d of 200 requests waited for workers that never answer; counted %v", late, s.tally.n)
		}
		time.Sleep(longest)
		synctest.Wait()
		if s.asked != 0 || len(s.flights) != 0 {
			t.Errorf("%d asked, %d flights are left", s.asked, len(s.flights))
		}
	})
}

func TestFailuresRest(t *testing.T) {
	s := newScene(t, func(context.Context, asked) (int, string, error) { return 0, "", errors.New("refused") })
	for i := range 10 {
		_, o := s.ids(t.Context(), prompt.Completion, fmt.Sprintf(`{"prompt":"%d"}`, i))
		if want := map[bool]Outcome{true: Failed, false: Nobody}[i < 3]; o != want {
			t.Errorf("request %d: %s; want %s", i, o, want)
		}
	}
	if got := len(s.fleet.paths()); got != 6 {
		t.Errorf("%d questions; want three a worker", got)
	}
	if n := strings.Count(s.log.String(), "worker="); n != 2 {
		t.Errorf("%d lines; want one a worker:\n%s", n, s.log)
	}
}

func TestAWorkerThatFailsIsReplaced(t *testing.T) {
	s := newScene(t, func(ctx context.Context, a asked) (int, string, error) {
		if a.worker == "a" {
			return 500, "", nil
		}
		return renderless("[5]")(ctx, a)
	})
	for i := range 20 {
		if _, o := s.ids(t.Context(), prompt.Completion, fmt.Sprintf(`{"prompt":"%d"}`, i)); o != Asked {
			t.Fatal(o)
		}
	}
}
