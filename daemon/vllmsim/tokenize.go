package vllmsim

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// handleTokenize is POST /tokenize in its completion form (prompt) and its chat form (messages).
func (s *Server) handleTokenize(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Model      string          `json:"model"`
		Prompt     *string         `json:"prompt"`
		Messages   []message       `json:"messages"`
		Tools      json.RawMessage `json:"tools"`
		Generate   *bool           `json:"add_generation_prompt"`
		WithTokens bool            `json:"return_token_strs"`
	}
	if !s.readPlain(w, r, &b, &b.Model, writeError) {
		return
	}
	if drained(modeOf(r)) {
		writeError(w, engineDead())
		return
	}
	var ids []uint32
	switch {
	case b.Prompt != nil:
		ids = appendTokens([]uint32{}, *b.Prompt)
	case b.Messages != nil:
		ids = chatTokens(b.Tools, b.Messages, b.Generate == nil || *b.Generate)
	default:
		writeError(w, invalid("missing", "body.prompt", "Field required", "'<dict>'"))
		return
	}
	var texts []string
	if b.WithTokens {
		texts = make([]string, len(ids))
		for i, id := range ids {
			t, _ := appendText(nil, id)
			texts[i] = string(t)
		}
	}
	writeJSON(w, http.StatusOK, struct {
		Count       int      `json:"count"`
		MaxModelLen int      `json:"max_model_len"`
		Tokens      []uint32 `json:"tokens"`
		Texts       []string `json:"token_strs"`
	}{len(ids), s.cfg.MaxModelLen, ids, texts})
}

// handleDetokenize is POST /detokenize.
func (s *Server) handleDetokenize(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Model  string          `json:"model"`
		Tokens json.RawMessage `json:"tokens"`
	}
	if !s.readPlain(w, r, &b, &b.Model, writeError) {
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
		text, _ = appendText(text, id)
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": strings.ToValidUTF8(string(text), "\ufffd")})
}

// readPlain reads a small body and checks its model; false: it has answered.
func (s *Server) readPlain(w http.ResponseWriter, r *http.Request, into any, model *string, refuse func(http.ResponseWriter, *apiError)) bool {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	refused := parse(r, raw, into)
	if refused == nil {
		refused = s.checkModel(*model)
	}
	if refused != nil {
		refuse(w, refused)
		return false
	}
	return true
}
