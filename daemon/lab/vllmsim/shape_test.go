package vllmsim

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// recorded reads a recording.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../..", "testdata", "vllm", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// shape lists a JSON value's paths in order, each with its type. Lists count by their first element: how many tokens
// there are is the tokenizer's affair.
func shape(t *testing.T, raw []byte) []string {
	t.Helper()
	var out []string
	d := json.NewDecoder(bytes.NewReader(raw))
	var walk func(path string, keep bool)
	walk = func(path string, keep bool) {
		tok, err := d.Token()
		if err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		kind := ""
		switch v := tok.(type) {
		case json.Delim:
			kind = string(v)
		case string:
			kind = "string"
		case float64:
			kind = "number"
		case bool:
			kind = "bool"
		case nil:
			kind = "null"
		}
		if keep {
			out = append(out, path+" "+kind)
		}
		switch tok {
		case json.Delim('{'):
			for d.More() {
				key, _ := d.Token()
				walk(path+"."+key.(string), keep)
			}
			d.Token()
		case json.Delim('['):
			for i := 0; d.More(); i++ {
				walk(path+"[]", keep && i == 0)
			}
			d.Token()
		}
	}
	walk("", true)
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more than one value in %s", raw)
	}
	return out
}

func sameShape(t *testing.T, what string, got, want []byte) {
	t.Helper()
	g, w := shape(t, got), shape(t, want)
	if !slices.Equal(g, w) {
		t.Errorf("%s: shape\n got %s\nwant %s", what, strings.Join(g, ", "), strings.Join(w, ", "))
	}
}

// eventsOf splits an SSE body into its data.
func eventsOf(t *testing.T, body []byte) []string {
	t.Helper()
	s := string(body)
	if !strings.HasSuffix(s, "\n\n") {
		t.Fatalf("stream does not end with a blank line: %q", s)
	}
	var out []string
	for _, e := range strings.Split(strings.TrimSuffix(s, "\n\n"), "\n\n") {
		_, data, ok := strings.Cut("\n"+e, "\ndata: ")
		if !ok {
			t.Fatalf("event without data: %q", e)
		}
		out = append(out, data)
	}
	return out
}

// eventNames lists the event: lines of an SSE body.
func eventNames(body []byte) []string {
	var out []string
	for line := range strings.Lines(string(body)) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			out = append(out, name)
		}
	}
	return out
}
