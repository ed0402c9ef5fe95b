package prompt

import (
	"fmt"
	"strings"
	"testing"
)

const ownID = "0123456789abcdef0123456789abcdef"

// vLLM's frames.
var (
	behindChat = Frame{Before: len("chatcmpl-")}
	behindCmpl = Frame{Before: len("cmpl-")}
)

func TestOwner(t *testing.T) {
	other := strings.Repeat("9", 32)
	f := func(what string, m Mark, ids []string, foreign bool, owner Owner, frame Frame) {
		t.Helper()
		r := NewReply(Chat, true, 0)
		r.Expect(m)
		for _, id := range ids {
			r.Feed([]byte(`data: {"id":"` + id + `","choices":[{"index":0,"delta":{"content":"x"}}]}` + "\n\n"))
		}
		got, where := r.Owner()
		if r.Foreign() != foreign || got != owner || where != frame {
			t.Errorf("%s: foreign %v, owner %d, %+v; want %v, %d, %+v", what, r.Foreign(), got, where, foreign, owner, frame)
		}
		if foreign && (!r.Failed() || r.ReportedError() || r.FailedCode() != 0) {
			t.Errorf("%s: an answer to another request is a failure that nobody reported", what)
		}
	}
	lax := Mark{ID: ownID}
	strict := Mark{ID: ownID, Frame: behindChat, Strict: true}
	same, one := []string{"chatcmpl-" + ownID}, []string{"chatcmpl-" + other}
	f("no id", lax, []string{""}, false, OwnerUnknown, Frame{})
	f("strict, no id", strict, []string{""}, true, OwnerUnknown, Frame{})
	f("none expected", Mark{}, one, false, OwnerUnknown, Frame{})
	f("lax, the same", lax, same, false, OwnerSame, behindChat)
	f("lax, another", lax, one, false, OwnerOther, Frame{After: 9})
	f("strict, the same", strict, append(same, same[0], same[0]), false, OwnerSame, behindChat)
	f("strict, another", strict, one, true, OwnerOther, Frame{After: 9})
	f("strict, another behind the same", strict, append(same, one[0]), true, OwnerOther, behindChat)
	f("lax, another behind the same", lax, append(same, one[0]), false, OwnerOther, behindChat)
	f("strict, an empty one behind the same", strict, append(same, ""), false, OwnerSame, behindChat)
	f("strict, more behind ours", strict, []string{"chatcmpl-" + ownID + "-0"}, true, OwnerSame, Frame{Before: 9, After: 2})
	loose := Mark{ID: ownID, Frame: Frame{Loose: true}, Strict: true}
	f("loose, a choice each", loose, []string{"cmpl-" + ownID + "-0", "cmpl-" + ownID + "-10"}, false, OwnerSame, Frame{Before: 5, After: 2})
	f("loose, another", loose, one, true, OwnerOther, Frame{After: 9})

	// Ids of clients may be part of any other.
	short := Mark{ID: "7", Frame: behindChat, Strict: true}
	f("short, the same", short, []string{"chatcmpl-7"}, false, OwnerSame, behindChat)
	f("short, part of another", short, []string{"chatcmpl-17"}, true, OwnerSame, Frame{Before: 10})
	f("short, the beginning of another", short, []string{"chatcmpl-71"}, true, OwnerSame, Frame{Before: 9, After: 1})
	f("short, part of the prefix", Mark{ID: "cmpl", Frame: behindChat, Strict: true}, []string{"chatcmpl-1234"}, true, OwnerSame, Frame{Before: 4, After: 5})
	f("with escapes", strict, []string{`chatcmpl\u002d` + ownID, `chatcmpl-` + ownID}, false, OwnerSame, behindChat)
	f("too long for an id of vLLM's", strict, []string{strings.Repeat("x", maxID+1)}, true, OwnerUnknown, Frame{})
}

// TestOwnerOfEachKind: ids stand where vLLM 0.32 writes them, in streams and whole answers.
func TestOwnerOfEachKind(t *testing.T) {
	f := func(kind Kind, stream bool, format string) {
		t.Helper()
		for id, foreign := range map[string]bool{ownID: false, strings.Repeat("9", 32): true} {
			text := fmt.Sprintf(format, id)
			for _, piece := range []int{1, 7, len(text)} {
				r := NewReply(kind, stream, 0)
				r.Expect(Mark{ID: ownID, Frame: behindCmpl, Strict: true})
				early := false
				for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
					r.Feed([]byte(rest[:min(piece, len(rest))]))
					early = early || r.Foreign() && len(rest) > 20
				}
				if early != foreign {
					t.Errorf("%s, stream %v, id %s, pieces of %d: foreign %v before its end; want %v", kind, stream, id, piece, early, foreign)
				}
			}
		}
	}
	more := `,"more":"` + strings.Repeat("x", 30) + `"}`
	f(Chat, true, `data: {"id":"cmpl-%s","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`+"\n\n"+`data: {"x":1}`+"\n\n: ........")
	f(Responses, true, `data: {"response":{"id":"cmpl-%s"},"type":"response.created"}`+"\n\n: ....................")
	f(Messages, true, `data: {"type":"message_start","message":{"id":"cmpl-%s","content":[]}}`+"\n\n: ..................")
	f(Chat, false, `{"id":"cmpl-%s"`+more)
	f(Embedding, false, ` { "id" : "cmpl-%s" `+more)
	f(Messages, false, `{"id": "cmpl-%s"`+more)
}

// TestBytesFromForeign: what came before another request's event may go to the client.
func TestBytesFromForeign(t *testing.T) {
	event := func(id, text string) string {
		return `data: {"id":"chatcmpl-` + id + `","choices":[{"index":0,"delta":{"content":"` + text + `"}}]}` + "\n\n"
	}
	own, foreign := event(ownID, "a")+event(ownID, "b")+event(ownID, "c"), event(strings.Repeat("8", 32), "d")+event(ownID, "e")
	r := NewReply(Chat, true, 0)
	r.Expect(Mark{ID: ownID, Frame: behindChat, Strict: true})
	r.Feed([]byte(own + foreign))
	if !r.Foreign() || r.BytesFromFailure() != len(foreign) {
		t.Errorf("foreign %v, %d bytes; want %d", r.Foreign(), r.BytesFromFailure(), len(foreign))
	}
	r = NewReply(Embedding, false, 0)
	r.Expect(Mark{ID: ownID, Frame: behindChat, Strict: true})
	r.Feed([]byte(`{"id":"chatcmpl-99999`))
	r.Feed([]byte(`9999999","data":[`))
	if !r.Foreign() || r.BytesFromFailure() != len(`9999999","data":[`) {
		t.Errorf("a body: foreign %v, %d bytes; want the second piece", r.Foreign(), r.BytesFromFailure())
	}
}

// TestAnswersWithoutID: where ids are expected, an answer without one is another endpoint's, unless it is a failure.
func TestAnswersWithoutID(t *testing.T) {
	f := func(body string, stream, foreign bool) {
		t.Helper()
		r := NewReply(Chat, stream, 0)
		r.Expect(Mark{ID: ownID, Frame: behindChat, Strict: true})
		r.Body([]byte(body))
		if r.Foreign() != foreign {
			t.Errorf("%q: foreign %v; want %v", body, r.Foreign(), foreign)
		}
	}
	f(`{"count":2,"tokens":[1,2]}`, false, true)
	f(`{"error":{"message":"no","code":400}}`, false, false)
	f(`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n", true, true)
	f("data: some text\n\n", true, true)
	f("data: [DONE]\n\n", true, false)
	f(": ping\n\n", true, false)
	f(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`+"\n\n", true, false)
	f(`data: {"error":{"message":"no","code":500}}`+"\n\n", true, false)
}

func FuzzLeadingID(f *testing.F) {
	for _, s := range []string{`{"id":"a"`, `{ "id" : "\u00e9"`, `{"id":1}`, `{"id":"`, `{"ID":"a"}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		raw := leadingID(body)
		if raw == nil {
			return
		}
		whole := NewReply(Chat, false, 0)
		whole.Body([]byte(`{"id":"` + string(raw) + `"}`))
		if len(raw) > 0 && len(raw) <= maxID && whole.ID() != string(unescape(nil, raw)) {
			t.Errorf("%q: %q; read whole it is %q", body, raw, whole.ID())
		}
	})
}
