package prompt

import (
	"os"
	"strings"
	"testing"
)

// deltaLast is an event of Responses as some engines write it: no number, and nothing behind the text.
const deltaLast = `data: {"type":"response.output_text.delta","delta":"a"}` + "\n\n"

// The second piece of text of every recorded stream goes the short way, and what differs in more than its text does
// not.
func TestQuickIsTaken(t *testing.T) {
	f := func(kind Kind, first, second string, want bool) {
		t.Helper()
		r := NewReply(kind, true, 0)
		r.Feed([]byte(first))
		if got := r.quickly([]byte(second)); got != 0 && got != len(second) || (got > 0) != want {
			t.Errorf("%d of %d bytes taken the short way, want %v\n%s%s", got, len(second), want, first, second)
		}
	}
	for _, version := range []string{"0.32.0", "0.19.1"} {
		b, err := os.ReadFile("testdata/vllm-" + version + "-responses.sse")
		if err != nil {
			t.Fatal(err)
		}
		all := strings.SplitAfter(string(b), "\n\n")
		f(Responses, strings.Join(all[:5], ""), all[5], true)
		f(Responses, strings.Join(all[:5], ""), all[6], false)
	}
	f(Responses, deltaLast, strings.Replace(deltaLast, `"a"`, `"b"`, 1), true)
	numbered := func(n string) string {
		return strings.Replace(deltaLast, `"delta":`, `"sequence_number":`+n+`,"delta":`, 1)
	}
	f(Responses, numbered("1"), numbered("2"), false)
	b, err := os.ReadFile("testdata/vllm-0.32.0-messages.sse")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.SplitAfter(string(b), "\n\n")
	f(Messages, strings.Join(all[:3], ""), all[3], true)
	f(Messages, strings.Join(all[:3], ""), all[4], false)

	chat := func(text string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
	}
	f(Chat, chat("a"), chat("b"), true)
	f(Chat, chat("a"), chat(`\"\u00e9\\`), true)
	f(Chat, chat("a"), strings.ReplaceAll(chat("b"), "\n", "\r\n"), false)
	f(Chat, chat("a"), chat(""), false)
	f(Chat, chat("a"), chat("\x01"), false)
	f(Chat, chat("a"), chat(`\x`), false)
	f(Chat, chat("a"), chat(`b"},"finish_reason":null}]}`), false)
	f(Chat, chat("a"), strings.Replace(chat("b"), "null", `"stop"`, 1), false)
	f(Chat, chat("a"), strings.Replace(chat("b"), ":0", ":1", 1), false)
	f(Chat, chat("a"), chat("b")[:40], false)
	f(Chat, chat("a")+"da", chat("b")[2:], false)
	f(Chat, strings.ReplaceAll(chat("a"), "content", "reasoning"), strings.ReplaceAll(chat("b"), "content", "reasoning"), true)
	f(Chat, chat(""), chat("b"), false)
	with := func(s string) string {
		return strings.Replace(s, `"finish_reason"`, `"token_ids":[1],"finish_reason"`, 1)
	}
	f(Completion, with(chat("a")), with(chat("b")), false) // the ids are to be gathered
}

func TestQuickGathers(t *testing.T) {
	r := NewReply(Chat, true, 0)
	for range 3 {
		r.Feed([]byte(chatChunk))
	}
	r.Feed([]byte(strings.Repeat(chatChunk, 4))) // several events in one piece
	if got := string(r.t.answers.list[0].text); got != strings.Repeat(" lazy dog", 7) {
		t.Errorf("%q", got)
	}
	if n := testing.AllocsPerRun(100, func() { r.Feed([]byte(chatChunk)) }); n > 1 {
		t.Errorf("%v allocations an event", n)
	}
}

func TestDigits(t *testing.T) {
	for s, want := range map[string]int{"": 0, "a": 0, "0": 1, "0,": 1, "00": 0, "01": 0, "10}": 2, "-1": 0} {
		if got := digits([]byte(s)); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

// Of a stream whose client takes nothing, one copy of the event that is being read is held, however large events are:
// a router holds thousands of such streams.
func TestAStuckStreamHoldsOneEvent(t *testing.T) {
	const size = 16 << 10
	event := `data: {"pad":"` + strings.Repeat("x", size) + `","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}` + "\n\n"
	r := NewReply(Chat, true, 0)
	for _, piece := range []int{size, size / 4, 1000, len(event), len(event) + 1000} {
		for rest := strings.Repeat(event, 20); rest != ""; {
			n := min(piece, len(rest))
			r.Feed([]byte(rest[:n]))
			rest = rest[n:]
		}
		held := cap(r.split.line) + cap(r.split.data) + cap(r.quick.head) + cap(r.quick.tail) + cap(r.quick.rest)
		if most := 2 * size; held > most {
			t.Errorf("in pieces of %d: %d bytes are held of events of %d; want at most %d", piece, held, size, most)
		}
	}
}
