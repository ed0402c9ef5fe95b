package exchange

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
)

// Nor do they in a body that is too long to be held, wherever it is cut, and none of an encoding that engines alone read.
func TestPairingOfLongBodies(t *testing.T) {
	d := newDuo(t, pair.NIXL)
	body := `{"model":"m","kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":"secret"},"messages":[],` +
		`"vllm_xargs":{"a":1,"kv_transfer_params":{"do_remote_prefill":true,"remote_block_ids":"secret"}}}`
	for _, held := range []int{20, len(body) - 1, len(body)} {
		in := inbound("POST", "/v1/chat/completions", body[:held])
		in.Epoch, in.ID = d.epoch, "id-1"
		in.Tail, in.Left = &rest{Reader: *strings.NewReader(body[held:] + "  ")}, int64(len(body)+2-held)
		life := new(message.Life)
		alone.Begin(life)
		if out := d.Serve(life, in); out.Status != 200 {
			t.Errorf("%d held: %d %s", held, out.Status, out.Body)
		}
		life.Leave()
		if got := d.took(); got == "" || strings.Contains(got, "pulls") {
			t.Errorf("%d held: %s", held, got)
		}
	}
	for _, mark := range []string{"", "\xff\xfe"} {
		wide := mark
		for _, c := range body {
			wide += string([]byte{byte(c), 0})
		}
		in := inbound("POST", "/v1/chat/completions", wide)
		in.Epoch = d.epoch
		if out := d.Serve(t.Context(), in); out.Status != 400 || d.took() != "" {
			t.Errorf("UTF-16 with mark %q: %d %s", mark, out.Status, out.Body)
		}
	}
}

// A body that is not all in memory goes to one worker. That is counted and recorded, once.
func TestPairingCountsLongBodies(t *testing.T) {
	f := func(what, path, begin, end string, split bool) {
		t.Helper()
		d := newDuo(t, pair.NIXL)
		d.roles(t)
		in := inbound("POST", path, begin)
		in.Tail, in.Left = &rest{Reader: *strings.NewReader(end)}, int64(len(end))
		in.Epoch, in.ID = d.epoch, "id-1"
		life := new(message.Life)
		alone.Begin(life)
		defer life.Leave()
		out := d.Serve(life, in)
		got := d.took()
		if out.Status != 200 || !strings.HasPrefix(got, "d") || strings.Contains(got, ";") {
			t.Errorf("%s: %d %s, %s", what, out.Status, out.Body, got)
		}
		if s := in.Seen.Split; (s != nil) != split || split && (s.Result != string(journal.PrefillLong) || s.Prefiller != "") {
			t.Errorf("%s: the record has %+v", what, s)
		}
		counts := ""
		for _, what := range d.counted.counted { // nobody writes to it any more
			if strings.HasPrefix(what, "prefill ") {
				counts += what
			}
		}
		if want := map[bool]string{true: "prefill long_body"}[split]; counts != want {
			t.Errorf("%s: counted %q; want %q", what, counts, want)
		}
		if strings.Contains(d.log.String(), "no prefiller") {
			t.Errorf("%s: the log: %s", what, d.log)
		}
	}
	begin := `{"model":"m","max_completion_tokens":50,"messages":[{"role":"user","content":"`
	words := strings.Repeat("word ", 800)
	const chats = "/v1/chat/completions"
	f("its message is cut", chats, begin+words, words+`"}]}`, true)
	f("its list is cut", chats, begin+words+`"}`, `]}`, true)
	f("its prompt is cut", "/v1/completions", `{"prompt":"`+words, words+`"}`, true)
	f("no text is generated", "/v1/embeddings", `{"input":"`+words, words+`"}`, false)
}
