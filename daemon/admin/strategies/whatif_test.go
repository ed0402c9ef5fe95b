package strategies

import (
	"strings"
	"testing"
)

func TestPathOf(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := pathOf([]byte(body)); got != want {
			t.Errorf("%s: %s; want %s", body, got, want)
		}
	}
	f(`{"model":"m","messages":[]}`, "/v1/chat/completions")
	f(`{"prompt":"x"}`, "/v1/completions")
	f(`{"input":"x"}`, "/v1/responses")
	f(`{"input":"x","encoding_format":"float"}`, "/v1/embeddings")
	f(`{"query":"x","documents":[]}`, "/v1/rerank")
	f(`{`, "/v1/chat/completions")
}

// What is no question is refused, and an unknown model is answered as a client would be.
func TestQuestionsThatCannotBeAsked(t *testing.T) {
	l := NewLab(nil, &scene{}) // with no sandbox: no strategy can be loaded
	f := func(q Question, want string) {
		t.Helper()
		if _, err := l.Ask(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v; want %q", q, err, want)
		}
	}
	f(Question{}, "send")
	f(Question{Body: []byte(`[]`)}, "send")
	f(Question{Body: []byte(`{}`), Path: "/nowhere"}, "serves no POST")
	a, err := l.Ask(Question{Body: []byte(`{"model":"m","messages":[]}`)})
	if err != nil || a.Refused != "model_not_found" || a.Why == "" || len(a.By) != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}
