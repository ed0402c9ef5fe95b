package replay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadStreamRecorded(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.sse")
	if len(files) < 3 {
		t.Fatalf("found %q, want three recordings", files)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []io.Reader{strings.NewReader(string(data)),
			iotest.OneByteReader(strings.NewReader(string(data)))} {
			begun := 0
			u, err := readStream(r, func() { begun++ })
			if err != nil || begun != 1 || u == nil || u.Prompt != 4 || u.cached() != 0 {
				t.Errorf("%s: begun %d times, usage %+v, %v", name, begun, u, err)
			}
		}
		// Cut anywhere before [DONE], it's no answer.
		whole := strings.Index(string(data), "[DONE]")
		for n := range whole {
			if _, err := readStream(strings.NewReader(string(data[:n])), func() {}); !errors.Is(err, errTruncated) {
				t.Fatalf("%s cut to %d bytes: %v", name, n, err)
			}
		}
	}
}

func TestReadStream(t *testing.T) {
	const (
		out = `data: {"choices":[{"index":0,"text":"a"}],"usage":null}` + "\n\n"
		use = `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":1,` +
			`"prompt_tokens_details":{"cached_tokens":64}}}` + "\n\n"
		done  = "data: [DONE]\n\n"
		fault = `data: {"error":{"message":"engine died","code":500}}` + "\n\n"
	)
	f := func(text string, wantBegun bool, wantCached int, wantErr error) {
		t.Helper()
		begun := 0
		u, err := readStream(strings.NewReader(text), func() { begun++ })
		cached := -1
		if u != nil {
			cached = u.cached()
		}
		if !errors.Is(err, wantErr) || (begun == 1) != wantBegun || begun > 1 || cached != wantCached {
			t.Errorf("%q: begun %d times, cached %d, error %v; want %v, %d, %v", text, begun, cached, err, wantBegun,
				wantCached, wantErr)
		}
	}
	f(out+out+use+done, true, 64, nil)
	f(out+done, true, -1, nil)
	f(use+done, false, 64, nil)
	f(": keep-alive\n\n"+out+use+done, true, 64, nil)
	f(": keep-alive\n\n"+use+done, false, 64, nil)
	f(strings.ReplaceAll(out+use+done, "\n", "\r\n"), true, 64, nil)
	f(strings.ReplaceAll(out+use+done, "data: ", "data:"), true, 64, nil)
	f(strings.ReplaceAll(out+use+done, `":`, `": `), true, 64, nil)
	f(strings.Replace(use, "100", "32", 1)+done, false, 32, nil) // more cached than there is
	f(strings.Replace(use, "64", "-64", 1)+done, false, 0, nil)
	f(use+out+done, true, 64, nil)
	f(strings.Replace(out, `"a"`, `"the \"error\" and \"prompt_tokens\":1"`, 1)+use+done, true, 64, nil)
	f(strings.Replace(out, `"index"`, `"error":null,"index"`, 1)+use+done, true, 64, nil)
	f(out+fault+done, true, -1, errEvent)
	f(fault, false, -1, errEvent)
	f("", false, -1, errTruncated)
	f(out+use, true, -1, errTruncated)
	f(out+use+"data: [DONE]", true, 64, nil)
	f(out+"data: "+strings.Repeat("x", maxEvent), true, -1, errTooLong)
}

func TestReadStreamBrokenConnection(t *testing.T) {
	broken := errors.New("reset by peer")
	_, err := readStream(io.MultiReader(strings.NewReader("data: {\"choices\":[{}]}\n\n"), iotest.ErrReader(broken)),
		func() {})
	if !errors.Is(err, broken) || !errors.Is(err, errTruncated) {
		t.Errorf("got %v", err)
	}
}

func FuzzReadStream(f *testing.F) {
	for _, v := range []string{"0.11.1", "0.32.0"} {
		data, err := os.ReadFile("testdata/vllm-" + v + ".sse")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("data: {\"error\":1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		begun := 0
		u, err := readStream(strings.NewReader(text), func() { begun++ })
		again, err2 := readStream(iotest.HalfReader(strings.NewReader(text)), func() {})
		if begun > 1 || (err == nil) != (err2 == nil) || (u == nil) != (again == nil) || u != nil && *u != *again {
			t.Fatalf("begun %d, %v and %v, %v and %v", begun, u, again, err, err2)
		}
		if u != nil && (u.cached() < 0 || u.cached() > max(0, u.Prompt)) {
			t.Fatalf("cached %d of %d", u.cached(), u.Prompt)
		}
	})
}

// An answer of the trace's mean length, 345 tokens, an event each.
func BenchmarkReadStream(b *testing.B) {
	text := strings.Repeat(`data: {"id":"cmpl-19fc6b6faaee4515b8f943601f227243","object":"text_completion",`+
		`"created":1795251264,"model":"tiny","choices":[{"index":0,"text":"kalo","logprobs":null,"finish_reason":null,`+
		`"stop_reason":null}]}`+"\n\n", 345) +
		`data: {"choices":[],"usage":{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":64}}}` +
		"\n\ndata: [DONE]\n\n"
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readStream(strings.NewReader(text), func() {}); err != nil {
			b.Fatal(err)
		}
	}
}
