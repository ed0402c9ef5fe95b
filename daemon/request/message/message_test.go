package message

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestInboundFields(t *testing.T) {
	in := inbound("GET", "/v1/models", "", "Accept", "a", "X", "", "accept", "b", "ACCEPT", "c")
	if got := in.Get("accept"); got != "a" {
		t.Errorf("Get: %q", got)
	}
	if got := in.All("Accept"); got != "a, b, c" {
		t.Errorf("All: %q", got)
	}
	if got := in.All("none"); got != "" {
		t.Errorf("All of none: %q", got)
	}
	_, none := in.Lookup("y")
	_, empty := in.Lookup("x")
	if none || !empty {
		t.Errorf("Lookup: none is there %v, an empty one %v", none, empty)
	}
}

// closing is a stream that records its end.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

var errBroken = errors.New("broke off")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func TestWhole(t *testing.T) {
	if text, cut, err := (&Outbound{Body: []byte("all")}).Whole(1); string(text) != "all" || cut || err != nil {
		t.Errorf("a body: %q %v %v", text, cut, err)
	}
	f := func(source io.Reader, limit int64, want string, cut bool, fails error) {
		t.Helper()
		c := &closing{Reader: source}
		text, gotCut, err := (&Outbound{Stream: c}).Whole(limit)
		if string(text) != want || gotCut != cut || !errors.Is(err, fails) || c.closed != 1 {
			t.Errorf("%q, cut %v, %v, closed %d times; want %q, %v, %v", text, gotCut, err, c.closed, want, cut, fails)
		}
	}
	f(strings.NewReader("1234"), 4, "1234", false, nil)
	f(strings.NewReader("12345"), 4, "1234", true, nil)
	f(io.MultiReader(strings.NewReader("12"), broken{}), 4, "12", false, errBroken)
}

func TestSalt(t *testing.T) {
	f := func(app, body, want string) {
		t.Helper()
		if got := (&Entry{Salt: app}).WithSalt(body); got != want {
			t.Errorf("%q, %q: %q; want %q", app, body, got, want)
		}
	}
	f("", "", "")
	f("", "b", "b")
	f("a", "", "\x00a")
	f("a", "b", "b\x00a")
}
