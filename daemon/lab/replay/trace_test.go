package replay

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const traceFile = "../../../testdata/traces/conversation-60.jsonl"

func readTestTrace(t testing.TB, limit int) []Request {
	t.Helper()
	trace, err := readTraceFile(traceFile, limit)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func TestReadTracePublished(t *testing.T) {
	trace := readTestTrace(t, 0)
	if len(trace) != 60 {
		t.Fatalf("got %d requests, want 60", len(trace))
	}
	if r := trace[0]; r.At != 0 || r.InputTokens != 6758 || r.OutputTokens != 500 || len(r.Blocks) != 14 ||
		r.Blocks[13] != 13 {
		t.Errorf("first request is %+v", r)
	}
	if at := trace[59].At; at != 15*time.Second {
		t.Errorf("last arrival at %v, want 15s", at)
	}
	if got := len(readTestTrace(t, 7)); got != 7 {
		t.Errorf("limit 7 gave %d requests", got)
	}
}

// TestSpread: 60 requests of a trace whose clock ticks every 3 s come one by one, in the same order for the same seed.
func TestSpread(t *testing.T) {
	moments := func(of []Request) int {
		at := map[time.Duration]bool{}
		for _, r := range of {
			at[r.At] = true
		}
		return len(at)
	}
	plain, spreadOut, again, other := readTestTrace(t, 0), readTestTrace(t, 0), readTestTrace(t, 0), readTestTrace(t, 0)
	spread(spreadOut, 3*time.Second, 1)
	spread(again, 3*time.Second, 1)
	spread(other, 3*time.Second, 2)
	if n := moments(plain); n != 6 {
		t.Errorf("the trace has %d moments, want 6", n)
	}
	if n := moments(spreadOut); n != 60 {
		t.Errorf("60 requests come at %d moments", n)
	}
	if !reflect.DeepEqual(spreadOut, again) || reflect.DeepEqual(spreadOut, other) {
		t.Error("a seed must give the same order, and another seed another one")
	}
	moved := map[int]time.Duration{}
	for i, r := range spreadOut {
		if i > 0 && r.At < spreadOut[i-1].At {
			t.Errorf("request %d comes at %v, before the one above", i, r.At)
		}
		moved[r.InputTokens] = r.At
	}
	for _, r := range plain {
		if by := moved[r.InputTokens] - r.At; by < 0 || by >= 3*time.Second {
			t.Errorf("a request of %v is moved by %v", r.At, by)
		}
	}
}

func TestReadTrace(t *testing.T) {
	const good = `{"timestamp": 5, "input_length": 513, "output_length": 2, "hash_ids": [1, 2]}`
	f := func(text, wantErr string) {
		t.Helper()
		trace, err := ReadTrace(strings.NewReader(text), "x.jsonl", 0)
		switch {
		case wantErr == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
			t.Errorf("%q: got %d requests and error %v, want %q", text, len(trace), err, wantErr)
		}
	}
	f(good, "")
	f(good+"\n\n"+good+"\n", "")
	f(strings.Replace(good, "{", `{"type": "chat", `, 1), "")
	f("", "x.jsonl holds no request; give")
	f("\n\n", "holds no request")
	f(good+"\n[]", "x.jsonl:2: not a trace line")
	f(good+"\n\n{", "x.jsonl:3: not a trace line")
	f(strings.Replace(good, `"timestamp": 5, `, "", 1), "x.jsonl:1: no timestamp; give")
	f(strings.Replace(good, `"input_length": 513, `, "", 1), "no input_length; give")
	f(strings.Replace(good, `"output_length": 2, `, "", 1), "no output_length; give")
	f(strings.Replace(good, "513", "512", 1), "2 hash_ids for input_length 512; want 1")
	f(strings.Replace(good, "513", "1025", 1), "want 3, one for each 512 tokens")
	f(strings.Replace(good, "513", "0", 1), "input_length 0 is not within 1 to")
	f(strings.Replace(good, "513", "16777217", 1), "is not within")
	f(strings.Replace(good, `"output_length": 2`, `"output_length": 0`, 1), "output_length 0 is not within")
	f(strings.Replace(good, "5,", "-5,", 1), "timestamp -5 is not within a year")
	f(strings.Replace(good, "5,", "5.5,", 1), "whole numbers")
	f(strings.Replace(good, "[1", "[-1", 1), "not a trace line")
	f(good+"\n"+strings.Replace(good, "5,", "4,", 1), "x.jsonl:2: timestamp 4 is before the line above, 5; sort")
	f(good+"\n"+`{"session_id": 3, "delay": 5, "input_length": 1, "output_length": 1, "hash_ids": [1]}`, "no line before it names")
	f(strings.Replace(good, "{", `{"delay": -1, `, 1), "delay -1 is not within a year")
	f(strings.Replace(good, "{", `{"session_id": "a", `, 1)+"\n"+
		`{"session_id": "a", "delay": 5.5, "input_length": 1, "output_length": 1, "hash_ids": [1]}`, "")
	f(`{"chat_id": 1, "parent_chat_id": -1, "timestamp": 1, "input_length": 17, "output_length": 1, "hash_ids": [1]}`,
		"x.jsonl:1: 1 hash_ids for input_length 17; want 2, one for each 16 tokens")
	f(good+"\n"+strings.Repeat(" ", maxTraceLine+1), "x.jsonl:2: line is longer")
}

func TestReadTraceStartsAtItsFirstRequest(t *testing.T) {
	trace, err := ReadTrace(strings.NewReader(`{"timestamp": 60000, "input_length": 1, "output_length": 1, "hash_ids": [1]}
{"timestamp": 60250, "input_length": 1, "output_length": 1, "hash_ids": [1]}`), "x", 0)
	if err != nil || trace[0].At != 0 || trace[1].At != 250*time.Millisecond {
		t.Errorf("got %+v, %v", trace, err)
	}
}

func TestTraceFileMissing(t *testing.T) {
	_, err := readTraceFile(t.TempDir()+"/none.jsonl", 0)
	if err == nil || !strings.Contains(err.Error(), "give a file of JSON lines") {
		t.Errorf("got %v", err)
	}
}

func FuzzReadTrace(f *testing.F) {
	data, err := os.ReadFile(traceFile)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data[:2000]))
	f.Add(`{"timestamp": 5, "input_length": 513, "output_length": 2, "hash_ids": [1, 2]}`)
	f.Add(`{"session_id": "a", "timestamp": 5, "input_length": 1, "output_length": 2, "hash_ids": [1]}
{"session_id": "a", "delay": 5.5, "input_length": 1, "output_length": 2, "hash_ids": [1]}`)
	f.Add(`{"chat_id": 7, "parent_chat_id": -1, "timestamp": 61.1, "input_length": 20, "output_length": 5, "hash_ids": [3, 9]}`)
	f.Add(`{"timestamp": 1e3, "input_length": 1, "output_length": 2, "hash_ids": [18446744073709551615]}`)
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace(strings.NewReader(text), "x", 0)
		if err != nil {
			return
		}
		if len(trace) == 0 {
			t.Fatal("no request and no error")
		}
		last := time.Duration(0)
		for _, r := range trace {
			full := len(r.Blocks) * r.BlockTokens
			if r.InputTokens > full || r.InputTokens <= full-r.BlockTokens || r.OutputTokens < 1 || r.Delay < 0 ||
				r.At < last && !r.Closed {
				t.Fatalf("accepted %+v after %v", r, last)
			}
			last = max(last, r.At)
		}
	})
}
