package upstream

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestLongBody: a body over one write's bound comes whole, with whatever follows it.
func TestLongBody(t *testing.T) {
	type body struct {
		text   []byte
		length int64
	}
	came := make(chan body, 1)
	w := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		came <- body{text, r.ContentLength}
	}))
	defer w.Close()
	c, err := New(Config{URL: w.URL})
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("0123456789abcde\n"), maxOpening/16+1000)
	f := func(head int, tail []byte, known bool) {
		t.Helper()
		r := &Request{Method: "POST", Path: "/", Body: text[:head]}
		want := int64(head + len(tail))
		if tail != nil {
			r.Tail, r.TailLength = bytes.NewReader(tail), int64(len(tail))
			if !known {
				r.TailLength, want = -1, -1
			}
		}
		resp, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Close()
		got := <-came
		if got.length != want || !bytes.Equal(got.text, append(text[:head:head], tail...)) || len(r.Body) != head {
			t.Errorf("%d bytes and %d: %d came, length %d; want %d", head, len(tail), len(got.text), got.length, want)
		}
	}
	for _, n := range []int{maxOpening - 1, maxOpening, maxOpening + 1, len(text)} {
		f(n, nil, true)
		f(n, []byte("the rest"), true)
		f(n, []byte("the rest"), false)
		f(n, []byte{}, false)
	}
}
