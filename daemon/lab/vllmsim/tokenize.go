package vllmsim

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// tokenizerAPI serves the tokenizer.
type tokenizerAPI struct{ checker }

// tokenize serves POST /tokenize in its completion form (prompt) and its chat form (messages).
func (a tokenizerAPI) tokenize(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Model      string          `json:"model"`
		Prompt     *string         `json:"prompt"`
		Messages   []message       `json:"messages"`
		Tools      json.RawMessage `json:"tools"`
		Generate   *bool           `json:"add_generation_prompt"`
		WithTokens bool            `json:"return_token_strs"`
	}
	if !a.parsePlain(w, r, &b, &b.Model, writeError) {
		return
	}
	if drained(modeOf(r)) {
		writeError(w, engineDead())
		return
	}
	var ids []uint32
	switch {
	case b.Prompt != nil:
		ids = engine.AppendTokens([]uint32{}, *b.Prompt)
	case b.Messages != nil:
		ids = chatTokens(b.Tools, b.Messages, b.Generate == nil || *b.Generate)
	default:
		writeError(w, missing("body.prompt"))
		return
	}
	var texts []string
	if b.WithTokens {
		texts = make([]string, len(ids))
		for i, id := range ids {
			t, _ := engine.AppendTokenText(nil, id)
			texts[i] = string(t)
		}
	}
	writeJSON(w, http.StatusOK, struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []uint32 `json:"tokens"`
		Texts       []string `json:"token_strs"`
	}{Count: len(ids), MaxModelLen: a.cfg.MaxModelLen, Tokens: ids, Texts: texts})
}

// detokenize serves POST /detokenize.
func (a tokenizerAPI) detokenize(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Model  string          `json:"model"`
		Tokens json.RawMessage `json:"tokens"`
	}
	if !a.parsePlain(w, r, &b, &b.Model, writeError) {
		return
	}
	if len(b.Tokens) == 0 || b.Tokens[0] != '[' {
		writeError(w, invalid("list_type", "body.tokens", "Input should be a valid list", "'<value>'"))
		return
	}
	ids, refused := idPrompt(b.Tokens)
	if refused != nil && refused != errNoPrompt {
		writeError(w, refused)
		return
	}
	var text []byte
	for _, id := range ids {
		text, _ = engine.AppendTokenText(text, id)
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": strings.ToValidUTF8(string(text), "\ufffd")})
}
