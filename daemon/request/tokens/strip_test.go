package tokens

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// inPieces gives the pieces of a text one at a time, and then an error.
type inPieces struct {
	pieces []string
	err    error
}

func (r *inPieces) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, r.err
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

func strip(t *testing.T, events bool, end error, pieces ...string) (out string, ids []uint32) {
	t.Helper()
	pieces = slices.DeleteFunc(pieces, func(s string) bool { return s == "" })
	b, err := io.ReadAll(NewStripper(&inPieces{pieces, end}, events, func(got []uint32) { ids = got }))
	if end == io.EOF {
		end = nil
	}
	if err != end {
		t.Fatalf("error %v; want %v", err, end)
	}
	return string(b), ids
}

// lists are the values that the recordings have with return_token_ids, and null without it.
var lists = regexp.MustCompile(`token_ids":\[[0-9,]*\]`)

// A recorded stream comes out as vLLM sends it without the field, wherever it is cut into reads.
func TestStreamsAreStrippedAtEveryCut(t *testing.T) {
	for _, v := range versions {
		for _, file := range []string{"chat-stream.sse", "completion-stream.sse"} {
			b, err := os.ReadFile("testdata/vllm/" + v + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			text := string(b)
			want := lists.ReplaceAllString(text, `token_ids":null`)
			if want == text {
				t.Fatalf("%s of %s has no ids", file, v)
			}
			for cut := range len(text) {
				got, ids := strip(t, true, io.EOF, text[:cut], text[cut:])
				if got != want {
					t.Fatalf("%s of %s, cut at %d:\n%s\nwant\n%s", file, v, cut, got, want)
				}
				if len(ids) < 4 || ids[0] != 0 {
					t.Fatalf("%s of %s, cut at %d: ids %v", file, v, cut, ids)
				}
			}
			if got, _ := strip(t, true, io.EOF, strings.Split(text, "")...); got != want {
				t.Errorf("%s of %s, byte by byte:\n%s", file, v, got)
			}
			if got, _ := strip(t, true, io.EOF, strings.ReplaceAll(text, "\n", "\r\n")); got != strings.ReplaceAll(want, "\n", "\r\n") {
				t.Errorf("%s of %s, with CRLF:\n%s", file, v, got)
			}
		}
	}
}

// A stream that breaks off gives no more than its whole events, and its error.
func TestStreamsThatBreakOff(t *testing.T) {
	b, err := os.ReadFile("testdata/vllm/0.32.0/chat-stream.sse")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	want := lists.ReplaceAllString(text, `token_ids":null`)
	broken := errors.New("broken")
	for cut := range len(text) {
		got, _ := strip(t, true, broken, text[:cut])
		whole := strings.LastIndex(text[:cut], "\n\n") + 2
		if whole < 2 {
			whole = 0
		}
		if got != lists.ReplaceAllString(text[:whole], `token_ids":null`) {
			t.Fatalf("broken off at %d: %q", cut, got)
		}
		if got, _ = strip(t, true, io.EOF, text[:cut]); !strings.HasPrefix(want, got) {
			t.Fatalf("ended at %d: %q is no beginning of the stream", cut, got)
		}
	}
}

func TestPlainAnswersAreStripped(t *testing.T) {
	for _, v := range versions {
		for _, r := range recorded(t, v, "return-token-ids.json") {
			want := lists.ReplaceAllString(string(r.Reply), `token_ids":null`)
			got, ids := strip(t, false, io.EOF, string(r.Reply[:100]), string(r.Reply[100:]))
			if got != want || len(ids) < 4 {
				t.Errorf("%s:\n%s\nwant\n%s\nids %v", v, got, want, ids)
			}
		}
	}
}

// What is none of the field's doing stays byte for byte.
func TestWhatIsNotStripped(t *testing.T) {
	f := func(events bool, in, want string) {
		t.Helper()
		if got, _ := strip(t, events, io.EOF, in); got != want {
			t.Errorf("%q:\n got %q\nwant %q", in, got, want)
		}
	}
	for _, in := range []string{
		`{"error":{"message":"token_ids\":[1]"}}`, `{"choices":[{"text":"\"token_ids\":[1]"}]}`, `[]`, `{`, ``, "not JSON",
		`{"choices":[{"message":{"token_ids":[1]}}],"usage":{"token_ids":[1]},"token_ids":[1]}`,
		`{"choices":[{"token_ids":null,"token_ids":7}]}`,
	} {
		f(false, in, in)
		f(true, "data: "+in+"\n\n", "data: "+in+"\n\n")
	}
	f(true, ": ping\n\nevent: x\ndata: {}\n\ndata: [DONE]\n\n", ": ping\n\nevent: x\ndata: {}\n\ndata: [DONE]\n\n")
	f(false, `{ "choices" : [ {"\u0074oken_ids" : [1, 2] } ] }`, `{ "choices" : [ {"\u0074oken_ids" : null } ] }`)
}

// vLLM 0.19 and 0.32 send a chunk with an empty delta for tokens that a parser of thoughts or tools keeps, only with
// return_token_ids.
func TestHollowChunksAreDropped(t *testing.T) {
	const head, tail = `data: {"id":"c","choices":[{"index":0,"delta":`, `,"token_ids":[5]}]}` + "\n\n"
	f := func(dropped bool, middle string) {
		t.Helper()
		if got, _ := strip(t, true, io.EOF, head+middle+tail); (got == "") != dropped {
			t.Errorf("%s: %q", middle, got)
		}
	}
	f(true, `{},"logprobs":null,"finish_reason":null`)
	f(true, `{"reasoning_content":null},"logprobs":null,"finish_reason":null`)
	f(false, `{"content":""},"logprobs":null,"finish_reason":null`)
	f(false, `{},"logprobs":null,"finish_reason":"stop"`)
	f(false, `{},"logprobs":{},"finish_reason":null`)
}

func TestLongEventsGoThrough(t *testing.T) {
	long := "data: " + strings.Repeat("x", maxHeld) + "\n\ndata: {}\n\n"
	got, err := io.ReadAll(NewStripper(strings.NewReader(long), true, nil))
	if err != nil || string(got) != long {
		t.Errorf("%d bytes, %v; want %d as they are", len(got), err, len(long))
	}
}

func TestStripperIsAReader(t *testing.T) {
	text := strings.Repeat(`data: {"choices":[{"token_ids":null,"text":"a"}]}`+"\n\n", 50)
	if err := iotest.TestReader(NewStripper(iotest.OneByteReader(strings.NewReader(text)), true, nil), []byte(text)); err != nil {
		t.Error(err)
	}
}

func TestWithIDs(t *testing.T) {
	for _, body := range []string{`{"a":1}`, " \n{ \"a\":1 }", "\xef\xbb\xbf{\"a\":1}"} {
		got := bytes.TrimPrefix(WithIDs([]byte(body)), []byte("\xef\xbb\xbf"))
		var tree map[string]any
		if err := json.Unmarshal(got, &tree); err != nil || tree["return_token_ids"] != true || tree["a"] != 1.0 {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
}

// FuzzStripper: however an answer is cut, it comes out the same, and as JSON it is what it was but for the lists.
func FuzzStripper(f *testing.F) {
	for _, file := range []string{"chat-stream.sse", "completion-stream.sse"} {
		b, err := os.ReadFile("testdata/vllm/0.32.0/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 100, true)
	}
	f.Add([]byte(`{"choices":[{"token_ids":[1]}],"prompt_token_ids":[1,2]}`), 7, false)
	f.Fuzz(func(t *testing.T, text []byte, cut int, events bool) {
		if cut < 0 || cut > len(text) {
			cut = 0
		}
		whole, _ := strip(t, events, io.EOF, string(text))
		if parts, _ := strip(t, events, io.EOF, string(text[:cut]), string(text[cut:])); parts != whole {
			t.Fatalf("cut at %d: %q; whole: %q", cut, parts, whole)
		}
		if !bytes.Contains(text, []byte("token_ids")) && !bytes.Contains(text, []byte(`\`)) && whole != string(text) {
			t.Fatalf("%q became %q", text, whole)
		}
		var before, after map[string]any
		if events || json.Unmarshal(text, &before) != nil || before == nil {
			return
		}
		if err := json.Unmarshal([]byte(whole), &after); err != nil {
			t.Fatalf("%q became %q: %v", text, whole, err)
		}
	})
}
