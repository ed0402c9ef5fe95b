package names

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var answers = []struct {
	events    bool
	from, got string
}{
	{false, `{"id":"1","model": "real/m","x":{"model":"real/m"},"l":["model","real/m"]}`,
		`{"id":"1","model": "alias","x":{"model":"real/m"},"l":["model","real/m"]}`},
	{false, `{"text":"\"model\":\"real/m\"","model":"a\"b\\"}`, `{"text":"\"model\":\"real/m\"","model":"alias"}`},
	{false, `{"model":null,"model":{"model":"m"},"models":"m","message":{"model":"m"}}`,
		`{"model":null,"model":{"model":"m"},"models":"m","message":{"model":"m"}}`},
	{false, `[{"model":"m"}]`, `[{"model":"m"}]`},
	{false, `{"mod\u0065l":"m","mod\x65l":"m","\nodel":"m","mo\u00zzel":"m","\u016Dodel":"m"}`,
		`{"mod\u0065l":"alias","mod\x65l":"m","\nodel":"m","mo\u00zzel":"m","\u016Dodel":"m"}`},
	{false, `{"mo\u00":"m","model":"m"}`, `{"mo\u00":"m","model":"alias"}`},
	{false, `}{"model":"m"`, `}{"model":"m"`},
	{true, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"1\",\"model\":\"m\"}}\n\n",
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"1\",\"model\":\"alias\"}}\n\n"},
	{true, "data: {\"response\":{\"tools\":[{\"model\":\"m\"}],\"model\":\"m\"}}\r\n\r\ndata:{\"model\":\"m\"}\n\ndata: [DONE]\n\n",
		"data: {\"response\":{\"tools\":[{\"model\":\"m\"}],\"model\":\"alias\"}}\r\n\r\ndata:{\"model\":\"alias\"}\n\ndata: [DONE]\n\n"},
	{true, "data: {\"x\":{\r\ndata: },\r\n: ping\r\ndata:\"model\":\r\ndata: \"m\"}\r\n\r\ndata: {\"x\":\"{\n\ndata: {\"model\":\"m\"}\r\r",
		"data: {\"x\":{\r\ndata: },\r\n: ping\r\ndata:\"model\":\r\ndata: \"alias\"}\r\n\r\ndata: {\"x\":\"{\n\ndata: {\"model\":\"alias\"}\r\r"},
	{true, ": {\"model\":\"m\"}\ndatum: {\"model\":\"m\"}\ndata: {\"delta\":{\"model\":\"m\"},\"model\":\"m",
		": {\"model\":\"m\"}\ndatum: {\"model\":\"m\"}\ndata: {\"delta\":{\"model\":\"m\"},\"model\":\"alias"},
}

func TestReader(t *testing.T) {
	for _, a := range answers {
		for what, from := range map[string]io.Reader{"whole": strings.NewReader(a.from),
			"by byte":      iotest.OneByteReader(strings.NewReader(a.from)),
			"with its end": iotest.DataErrReader(strings.NewReader(a.from))} {
			got, err := io.ReadAll(NewReader(from, "alias", a.events))
			if err != nil || string(got) != a.got {
				t.Errorf("%s, %s: %s, %v", a.from, what, got, err)
			}
		}
	}
}

// TestReaderPassesErrorsOn: what came before an answer broke off is read, and then the error.
func TestReaderPassesErrorsOn(t *testing.T) {
	from := io.MultiReader(strings.NewReader(`{"model":"m`), iotest.ErrReader(io.ErrUnexpectedEOF))
	got, err := io.ReadAll(iotest.OneByteReader(NewReader(from, "a longer name", false)))
	if string(got) != `{"model":"a longer name` || err != io.ErrUnexpectedEOF {
		t.Errorf("%s, %v", got, err)
	}
}

func TestFind(t *testing.T) {
	const text = `{"messages":[{"model":"n"}],"model" : "one","x":"\"model\":\"n\"","model":"two","tail":`
	var found []string
	for _, s := range Find([]byte(text)) {
		found = append(found, text[s[0]:s[1]])
	}
	if strings.Join(found, " ") != "one two" {
		t.Errorf("found %q", found)
	}
}

// FuzzReader: an answer may be cut at any byte, and one without the word is not changed.
func FuzzReader(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a.from), len(a.from)/2, a.events)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int, events bool) {
		cut = max(0, min(cut, len(text)))
		whole, _ := io.ReadAll(NewReader(bytes.NewReader(text), "alias", events))
		pieces := io.MultiReader(bytes.NewReader(text[:cut]), bytes.NewReader(text[cut:]))
		got, err := io.ReadAll(NewReader(pieces, "alias", events))
		if err != nil || !bytes.Equal(got, whole) {
			t.Fatalf("%q cut at %d: %q, whole %q, %v", text, cut, got, whole, err)
		}
		if !bytes.Contains(text, []byte("model")) && !bytes.Contains(text, []byte(`\u`)) && !bytes.Equal(got, text) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
