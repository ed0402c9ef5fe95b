package tokens

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// bounded is a fleet of one worker that records how long its answers may be.
type bounded struct{ limits []int }

func (*bounded) Askable(Group, time.Time, []Target) []Target { return []Target{{ID: "a"}} }

func (b *bounded) Post(_ context.Context, _ Target, _ string, _ []byte, limit int) (int, []byte, error) {
	b.limits = append(b.limits, limit)
	return 0, nil, errors.New("no answer")
}

// TestAnswersAreBoundedByTheirQuestion: a worker's answer to a short text is short.
func TestAnswersAreBoundedByTheirQuestion(t *testing.T) {
	f := func(size, want int) {
		t.Helper()
		b := &bounded{}
		s := asker{fleet: b, slow: func() time.Duration { return 0 }}
		_, _ = s.tokenize(t.Context(), Target{ID: "a"}, "m", make([]byte, size))
		_, _ = s.askAt(t.Context(), Target{ID: "a"}, &query{render: "/r", body: make([]byte, size)})
		if len(b.limits) != 2 || b.limits[0] != want || b.limits[1] != want {
			t.Errorf("%d bytes: answers of %v bytes; want %d", size, b.limits, want)
		}
	}
	f(0, 64<<10)
	f(800, 64<<10+16*800)
	f(1<<20, 64<<10+16<<20)
	f(2<<20, 24<<20)
}

// TestIDsAreBoundedByTheirQuestion: a worker's answer has hardly more ids than the text has bytes, however short it writes
// them.
func TestIDsAreBoundedByTheirQuestion(t *testing.T) {
	f := func(size, ids int, ok bool) {
		t.Helper()
		list := "[" + strings.Repeat("1,", ids-1) + "1]"
		most := mostIDs(make([]byte, size))
		if got, _, err := parseTokenize([]byte(fmt.Sprintf(`{"count":%d,"max_model_len":9,"tokens":%s}`, ids, list)), most); (err == nil) != ok ||
			cap(got) > 2*most {
			t.Errorf("/tokenize: %d ids for %d bytes: %v, room for %d", ids, size, err, cap(got))
		}
		if got, err := parseRender([]byte(`{"token_ids":`+list+`}`), most); (err == nil) != ok || cap(got) > 2*most {
			t.Errorf("a render: %d ids for %d bytes: %v, room for %d", ids, size, err, cap(got))
		}
	}
	f(100, 100, true)
	f(100, 16<<10, true)
	f(100, 17<<10, false)
	f(800, 1<<20, false)
	f(1<<20, 1<<20, true)
}
