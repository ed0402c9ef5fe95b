package route

import "testing"

func TestExpectedAnswers(t *testing.T) {
	var a answers
	f := func(what string, caller uint64, limit, want uint32) {
		t.Helper()
		if got := a.expected(1, caller, limit); got != want {
			t.Errorf("%s: %d tokens; want %d", what, got, want)
		}
	}
	f("nothing is known", 5, 0, 0)
	for range 4 {
		a.learn(1, 5, 100)
		a.learn(1, 6, 300)
	}
	a.learn(1, 6, 0) // not known
	f("few answers of a caller: the model's", 5, 0, 200)
	for range 4 {
		a.learn(1, 5, 100)
	}
	f("the caller's own", 5, 0, 100)
	f("the request's limit", 5, 60, 60)
	f("a caller without any: the model's", 7, 0, 166)
	for i := range uint64(2 * maxModels) {
		a.learn(100+i, i, 50)
	}
	if len(a.of) > maxModels {
		t.Errorf("%d means; want %d at most", len(a.of), maxModels)
	}
}
