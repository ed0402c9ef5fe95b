package tokens

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

func TestAnswersThatAreNotUnderstood(t *testing.T) {
	f := func(want Outcome, status int, answer string) {
		t.Helper()
		s := newScene(t, func(_ context.Context, a asked) (int, string, error) {
			if a.path == "/tokenize" {
				return status, answer, nil
			}
			return 404, "", nil
		})
		if ids, o := s.ids(t.Context(), prompt.Completion, `{"prompt":"x"}`); o != want || ids != nil {
			t.Errorf("%s: %s, %v; want %s", answer, o, ids, want)
		}
	}
	f(Failed, 200, ``)
	f(Failed, 200, `{"count":2,"tokens":[1]}`)
	f(Failed, 200, `{"count":1,"tokens":["1"]}`)
	f(Failed, 200, `{"tokens":[1]}`)
	f(Failed, 200, `{"count":1,"tokens":[1]`)
	f(Failed, 500, `{}`)
	f(Refused, 400, `{}`)
	f(Unsupported, 404, `{}`)
}

func TestRenderAnswers(t *testing.T) {
	f := func(want Outcome, answer string) {
		t.Helper()
		s := newScene(t, func(context.Context, asked) (int, string, error) { return 200, answer, nil })
		if ids, o := s.ids(t.Context(), prompt.Completion, `{"prompt":"x"}`); o != want || (ids != nil) != (want == Asked) {
			t.Errorf("%s: %s, %v; want %s", answer, o, ids, want)
		}
	}
	f(Asked, `[{"token_ids":[1],"features":null}]`)
	f(Asked, `{"token_ids":[1]}`)
	f(Failed, `[{"token_ids":[1]},{"token_ids":[2]}]`)
	f(Failed, `{"token_ids":[1],"features":{"image":1}}`)
	f(Failed, `[]`)
	f(Failed, `{"token_ids":null}`)
}

func FuzzQuestion(f *testing.F) {
	f.Add(1, []byte(hello))
	f.Add(2, []byte(`{"prompt":[1,2,3]}`))
	f.Add(3, []byte(`{"input":[{"role":"user"}]}`))
	f.Fuzz(func(t *testing.T, kind int, body []byte) {
		q := new(Question)
		q.Read(prompt.Kind(kind), "m", body)
		if q.why != "" || q.Given != nil {
			return
		}
		a := newQuery(q, body, q.plain)
		if a.tokenize != nil && !prompt.Fields(a.tokenize, func(_, _ []byte) bool { return true }) {
			t.Fatalf("%q for /tokenize from %q", a.tokenize, body)
		}
	})
}

func FuzzIDs(f *testing.F) {
	f.Add([]byte(`[1, 2,3]`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, list []byte) {
		ids, ok := appendIDs(nil, list, len(list))
		var want []uint32
		if err := json.Unmarshal(list, &want); ok != (err == nil && want != nil && !strings.Contains(string(list), "null")) {
			t.Fatalf("%q: %v; encoding/json: %v", list, ok, err)
		}
		if ok && !slices.Equal(ids, want) {
			t.Fatalf("%q: %v", list, ids)
		}
	})
}
