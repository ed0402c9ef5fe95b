package tokens

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// serve has a request's ids asked for and then its answer name others, as a worker does that is given WithIDs.
func (s *scene) serve(body, has string) (o Outcome, taught bool) {
	s.t.Helper()
	r := Request{Question: read(prompt.Chat, body), Body: []byte(body), Arrived: time.Now()}
	ids, o := s.IDs(s.t.Context(), r)
	l := s.Lesson(r, ids, o)
	if l == nil {
		return o, false
	}
	answer := `{"choices":[{"token_ids":[9]}],"prompt_token_ids":` + has + `}`
	if _, err := io.ReadAll(l.Strip(strings.NewReader(answer), false)); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
	return o, true
}

func chatOf(i int, more string) string {
	return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d"}]%s}`, i, more)
}

// What was late is known by its answer.
func TestAnswersTeach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, nil)
		s.fleet.workers = nil
		if o, taught := s.serve(hello, "[1,2,3]"); o != Nobody || !taught {
			t.Error(o, taught)
		}
		if ids, o := s.ids(t.Context(), prompt.Chat, hello); o != Cached || !slices.Equal(ids, []uint32{1, 2, 3}) {
			t.Error(ids, o)
		}
		s.Configure(Config{CacheBytes: 1 << 20})
		if _, taught := s.serve(chatOf(1, ""), "[1]"); taught {
			t.Error("an answer teaches though learn is off")
		}
	})
}

func TestNotEveryAnswerTeaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, renderless("[1,2,3]"))
		taught := 0
		for i := range 2 * auditEvery {
			if _, did := s.serve(chatOf(i, ""), "[1,2,3]"); did {
				taught++
			}
		}
		if taught != needed+2 {
			t.Errorf("%d of %d answers were asked for ids; want %d and one in %d", taught, 2*auditEvery, needed, auditEvery)
		}
		for _, more := range []string{`,"echo":true`, `,"logprobs":true`, `,"return_token_ids":true`} {
			if _, did := s.serve(chatOf(-1, more), "[1,2,3]"); did {
				t.Errorf("%s: the answer is asked for ids, which changes more of it", more)
			}
		}
	})
}

// With a field that /tokenize does not know it is asked when answers have shown that it is right all the same.
func TestFieldsBeyondTokenizeAreProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const more = `,"response_format":{"type":"json_object"}`
		s := newScene(t, renderless("[1,2,3]"))
		for i := range needed {
			if o, taught := s.serve(chatOf(i, more), "[1,2,3]"); o != Unsupported || !taught {
				t.Error(o, taught)
			}
		}
		if o, _ := s.serve(chatOf(7, more), "[1,2,3]"); o != Asked {
			t.Errorf("proven %d times: %s", needed, o)
		}
		if o, _ := s.serve(chatOf(8, `,"response_format":{"type":"text"}`), "[1,2,3]"); o != Unsupported {
			t.Errorf("another value of the field: %s", o)
		}
		for _, a := range s.fleet.got {
			if a.path == "/tokenize" && strings.Contains(a.body, "response_format") {
				t.Errorf("/tokenize got %s", a.body)
			}
		}
	})
}

// A worker whose /tokenize is not its engine's is not asked for some time, and one line of the log reports it.
func TestDifferencesEndTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, renderless("[1,2,3]"))
		if o, _ := s.serve(chatOf(0, ""), "[1,2,4]"); o != Asked {
			t.Error(o)
		}
		for i := range 5 {
			if o, taught := s.serve(chatOf(1+i, ""), "[1,2,4]"); o != Unsupported || taught {
				t.Errorf("after a difference: %s, taught %v", o, taught)
			}
		}
		if ids, o := s.ids(t.Context(), prompt.Chat, chatOf(0, "")); o != Cached || !slices.Equal(ids, []uint32{1, 2, 4}) {
			t.Errorf("%s, %v; want what the engine had", o, ids)
		}
		if n := strings.Count(s.log.String(), "gives other token ids"); n != 1 {
			t.Errorf("%d lines:\n%s", n, s.log)
		}
		time.Sleep(distrust)
		if o, _ := s.serve(chatOf(9, ""), "[1,2,3]"); o != Asked {
			t.Errorf("after %v: %s", distrust, o)
		}
	})
}
