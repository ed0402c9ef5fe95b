package vllmsim

import (
	"encoding/json"
	"net/http"
	"sort"
	"strings"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// texts reads a text, an object with one, or a list of these.
func texts(raw json.RawMessage) []string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, one := range list {
		out = append(out, textOf(one))
	}
	return out
}

// textOf returns a text, or that of an object with one.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		text, _ := v["text"].(string)
		return text
	}
	return ""
}

// firstTexts reads the first of the fields that is there.
func firstTexts(choices ...json.RawMessage) []string {
	for _, raw := range choices {
		if !isNull(raw) {
			return texts(raw)
		}
	}
	return nil
}

// relevance returns the part of the query's words that stand in the document, and a little more, so that documents
// differ.
func relevance(query, document string) float64 {
	words := strings.Fields(strings.ToLower(query))
	lower := strings.ToLower(document)
	hit := 0
	for _, w := range words {
		if strings.Contains(lower, w) {
			hit++
		}
	}
	rest := float64(hashTokens(engine.AppendTokens(nil, document))%1000) / 1000
	return (float64(hit) + rest) / float64(len(words)+1)
}

// rerankResult is one document and how well it fits.
type rerankResult struct {
	Index    int `json:"index"`
	Document struct {
		Text       string  `json:"text"`
		Multimodal *string `json:"multi_modal"`
	} `json:"document"`
	Score float64 `json:"relevance_score"`
}

// rerankAPI serves the endpoints that compare texts.
type rerankAPI struct{ checker }

func (a rerankAPI) routes(m router) {
	for _, path := range []string{"/rerank", "/v1/rerank", "/v2/rerank"} {
		m.on(path, "POST", a.rerank)
	}
	for _, path := range []string{"/score", "/v1/score"} {
		m.on(path, "POST", a.score)
	}
}

// rerank sorts documents by how well they fit a query.
func (a rerankAPI) rerank(w http.ResponseWriter, r *http.Request) {
	var b poolingBody
	if !a.parsePlain(w, r, &b, &b.Model, writeError) {
		return
	}
	query, documents := textOf(b.Query), texts(b.Documents)
	if query == "" || documents == nil {
		writeError(w, missing("body.query"))
		return
	}
	results := make([]rerankResult, len(documents))
	used := 0
	for i, d := range documents {
		results[i].Index = i
		results[i].Document.Text = d
		results[i].Score = relevance(query, d)
		used += engine.CountTokens(query) + engine.CountTokens(d)
	}
	sort.SliceStable(results, func(i, j int) bool { return results[i].Score > results[j].Score })
	if b.TopN > 0 {
		results = results[:min(b.TopN, len(results))]
	}
	writeAtOnce(w, r, struct {
		ID      string         `json:"id"`
		Model   string         `json:"model"`
		Usage   map[string]int `json:"usage"`
		Results []rerankResult `json:"results"`
	}{
		ID:      "rerank-" + newID(),
		Model:   a.cfg.Models[0],
		Usage:   map[string]int{"prompt_tokens": used, "total_tokens": used},
		Results: results,
	})
}

// score answers with how well texts fit each other.
func (a rerankAPI) score(w http.ResponseWriter, r *http.Request) {
	var b poolingBody
	if !a.parsePlain(w, r, &b, &b.Model, writeError) {
		return
	}
	one := firstTexts(b.Queries, b.Data1, b.Text1)
	two := firstTexts(b.Documents, b.Items, b.Data2, b.Text2)
	if one == nil || two == nil || len(one) != 1 && len(one) != len(two) {
		writeError(w, badRequest("", "Input lengths must be either 1:1, 1:N or N:N"))
		return
	}
	answer := newPoolingAnswer("score-", a.cfg.Models[0])
	for i, d := range two {
		q := one[min(i, len(one)-1)]
		answer.Data = append(answer.Data, map[string]any{"index": i, "object": "score", "score": relevance(q, d)})
		answer.Usage.Prompt += engine.CountTokens(q) + engine.CountTokens(d)
	}
	answer.Usage.Total = answer.Usage.Prompt
	writeAtOnce(w, r, answer)
}
