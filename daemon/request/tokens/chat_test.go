package tokens

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// template is a tokenizer with a chat template: a boundary token, the role and the bytes of each message.
type template struct {
	merges   bool   // a message's ids depend on how many there are
	ordinary bool   // the boundary is no token of its own inside of a text
	shift    uint32 // of the ids of roles
}

const boundaryID, answerID, endID = 2, 99, 3

func (m template) chat(messages []map[string]string, generate bool) (ids []uint32) {
	ids = append(ids, 0)
	for i, msg := range messages {
		ids = append(ids, boundaryID, uint32(len(msg["role"]))+m.shift)
		if m.merges && i > 0 {
			ids = append(ids, uint32(len(messages)+500))
		}
		for _, c := range []byte(msg["content"]) {
			ids = append(ids, 1000+uint32(c))
		}
		ids = append(ids, endID)
	}
	if generate {
		ids = append(ids, boundaryID, answerID)
	}
	return ids
}

func (m template) text(s string) (ids []uint32) {
	for s != "" {
		if rest, ok := strings.CutPrefix(s, "<|b|>"); ok && !m.ordinary {
			ids, s = append(ids, boundaryID), rest
			continue
		}
		ids, s = append(ids, 1000+uint32(s[0])), s[1:]
	}
	return ids
}

func (m template) answer(_ context.Context, a asked) (int, string, error) {
	var b struct {
		Prompt   *string             `json:"prompt"`
		Messages []map[string]string `json:"messages"`
		Generate *bool               `json:"add_generation_prompt"`
		Tokens   []uint32            `json:"tokens"`
	}
	if err := json.Unmarshal([]byte(a.body), &b); err != nil {
		return 0, "", err
	}
	var ids []uint32
	switch {
	case a.path == "/detokenize":
		return 200, `{"prompt":"<|b|>"}`, nil
	case a.path != "/tokenize":
		return 404, "", nil
	case b.Prompt != nil:
		ids = m.text(*b.Prompt)
	default:
		ids = m.chat(b.Messages, b.Generate == nil || *b.Generate)
	}
	list, _ := json.Marshal(ids)
	return 200, fmt.Sprintf(`{"count":%d,"max_model_len":4096,"tokens":%s}`, len(ids), list), nil
}

// talk plays a conversation of so many turns, and returns the outcomes. Every answer must be the template's.
func (s *scene) talk(m template, name string, turns int) (outcomes []Outcome) {
	s.t.Helper()
	var messages []map[string]string
	for i := range turns {
		if i > 0 {
			messages = append(messages, map[string]string{"role": "assistant", "content": fmt.Sprint(name, " answer ", i)})
		}
		messages = append(messages, map[string]string{"role": "user", "content": fmt.Sprint(name, " question ", i, strings.Repeat(".", 200))})
		list, _ := json.Marshal(messages)
		ids, o := s.ids(s.t.Context(), prompt.Chat, fmt.Sprintf(`{"model":"m","messages":%s}`, list))
		if want := m.chat(messages, true); !slices.Equal(ids, want) {
			s.t.Errorf("%s, turn %d, %s:\n%v\nwant\n%v", name, i, o, ids, want)
		}
		outcomes = append(outcomes, o)
		synctest.Wait()
	}
	return outcomes
}

// When chats of a context were shown to come apart, a worker is asked for the end of a chat alone.
func TestChatsAreExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m template
		s := newScene(t, m.answer)
		s.talk(m, "first", 7)
		before := len(s.fleet.got)
		if got := s.talk(m, "second", 4); !slices.Equal(got, []Outcome{Asked, Extended, Extended, Extended}) {
			t.Errorf("a later chat was %v", got)
		}
		asked := s.fleet.got[before:]
		if strings.HasSuffix(asked[0].path, "/render") { // chance asks this worker for the first time: it has no such path
			asked = asked[1:]
		}
		for _, a := range asked[1:] {
			if strings.Contains(a.body, "second question 0") {
				t.Errorf("the beginning went to a worker again: %s", a.body)
			}
		}
		tools := `{"model":"m","tools":[{"type":"function"}],"messages":[{"role":"user","content":"x"}]}`
		if _, o := s.ids(t.Context(), prompt.Chat, tools); o != Asked {
			t.Errorf("another context: %s", o)
		}
		if bytes, _ := s.cache.size(); bytes > 40<<10 {
			t.Errorf("%d bytes: the turns of a chat do not share their ids", bytes)
		}
	})
}

// A template that prints messages otherwise in a longer chat is found out before anything is put together.
func TestChatsThatDoNotComeApart(t *testing.T) {
	for _, m := range []template{{merges: true}, {ordinary: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, m.answer)
			for i := range 4 {
				for turn, o := range s.talk(m, fmt.Sprint("chat ", i), 6) {
					if o != Asked {
						t.Errorf("%+v, turn %d: %s", m, turn, o)
					}
				}
			}
		})
	}
}

// A template that changes is found by the comparisons that go on.
func TestExtensionsAreAudited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := template{}
		s := newScene(t, func(ctx context.Context, a asked) (int, string, error) { return m.answer(ctx, a) })
		s.Configure(Config{Budget: 50 * time.Millisecond, CacheBytes: 1 << 22})
		s.talk(m, "first", 7)
		m.merges = true
		wrong := 0
		for i := range auditEvery {
			list := fmt.Sprintf(`[{"role":"user","content":"q%d"}`, i)
			for turn := range 3 {
				if turn > 0 {
					list += `,{"role":"assistant","content":"a"},{"role":"user","content":"b"}`
				}
				_, o := s.ids(t.Context(), prompt.Chat, `{"model":"m","messages":`+list+`]}`)
				if o == Extended {
					wrong++
				}
				synctest.Wait()
			}
		}
		if wrong == 0 || wrong > auditEvery {
			t.Errorf("%d chats were put together by a template that is no more; want at most one in %d unseen", wrong, auditEvery)
		}
	})
}

// A worker that fails while it is shown how to take chats apart is asked once more a minute later.
func TestHingeIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, fails := template{}, true
		s := newScene(t, func(ctx context.Context, a asked) (int, string, error) {
			if fails && a.path == "/detokenize" {
				return 500, "", nil
			}
			return m.answer(ctx, a)
		})
		s.talk(m, "first", 7)
		fails = false
		time.Sleep(lookAgain)
		s.talk(m, "second", 7)
		if got := s.talk(m, "third", 4); !slices.Equal(got, []Outcome{Asked, Extended, Extended, Extended}) {
			t.Errorf("a later chat was %v", got)
		}
	})
}

// After a worker got another template, chats are put together by that one.
func TestAnotherTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := template{}
		s := newScene(t, func(ctx context.Context, a asked) (int, string, error) { return m.answer(ctx, a) })
		s.talk(m, "first", 7)
		m.shift = 7
		s.talk(m, "second", 7) // the ids of its ends no longer begin as they did
		time.Sleep(distrust)
		s.talk(m, "third", 7)
		if got := s.talk(m, "fourth", 4); !slices.Equal(got, []Outcome{Asked, Extended, Extended, Extended}) {
			t.Errorf("a later chat was %v", got)
		}
	})
}
