package vllmsim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"sort"
	"strings"
	"time"
)

// defaultDims is the length of a vector where the request names none.
const defaultDims = 64

// maxDims bounds what a request may ask for.
const maxDims = 8192

// poolingBody is what the simulator reads of the bodies of a pooling model's endpoints. They are answered at once: a
// prefill with nothing behind it, and vLLM caches no prefixes for most such models.
type poolingBody struct {
	Model     string          `json:"model"`
	Input     json.RawMessage `json:"input"`
	Messages  []message       `json:"messages"`
	Encoding  string          `json:"encoding_format"`
	Dims      int             `json:"dimensions"`
	Query     any             `json:"query"`
	Documents json.RawMessage `json:"documents"`
	TopN      int             `json:"top_n"`
	Text1     json.RawMessage `json:"text_1"`
	Text2     json.RawMessage `json:"text_2"`
	Data1     json.RawMessage `json:"data_1"`
	Data2     json.RawMessage `json:"data_2"`
	Queries   json.RawMessage `json:"queries"`
	Items     json.RawMessage `json:"items"`
}

// poolingUsage is the usage of such an answer.
type poolingUsage struct {
	Prompt  int     `json:"prompt_tokens"`
	Total   int     `json:"total_tokens"`
	Reply   int     `json:"completion_tokens"`
	Details *string `json:"prompt_tokens_details"`
}

// poolingAnswer is a list of results.
type poolingAnswer struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Data    []any        `json:"data"`
	Usage   poolingUsage `json:"usage"`
}

func (s *Server) poolingRoutes(on func(path, methods string, h http.HandlerFunc)) {
	on("/v1/embeddings", "POST", s.pooled("embd-", func(b *poolingBody, i int, ids []uint32) any {
		return map[string]any{"index": i, "object": "embedding", "embedding": b.encode(vector(ids, b.Dims))}
	}))
	on("/pooling", "POST", s.pooled("pool-", func(b *poolingBody, i int, ids []uint32) any {
		return map[string]any{"index": i, "object": "pooling", "data": b.encode(vector(ids, b.Dims))}
	}))
	on("/classify", "POST", s.pooled("classify-", func(_ *poolingBody, i int, ids []uint32) any {
		p := float64(hashOf(ids)%1000) / 1000
		label := "LABEL_0"
		if p < 0.5 {
			label = "LABEL_1"
		}
		return map[string]any{"index": i, "label": label, "probs": []float64{p, 1 - p}, "num_classes": 2}
	}))
	for _, path := range []string{"/rerank", "/v1/rerank", "/v2/rerank"} {
		on(path, "POST", s.handleRerank)
	}
	for _, path := range []string{"/score", "/v1/score"} {
		on(path, "POST", s.handleScore)
	}
}

// pooled answers with one result for each input.
func (s *Server) pooled(prefix string, result func(b *poolingBody, i int, ids []uint32) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b poolingBody
		if !s.readPlain(w, r, &b, &b.Model, writeError) {
			return
		}
		prompts, err := [][]uint32{chatTokens(nil, b.Messages, true)}, (*apiError)(nil)
		if b.Messages == nil {
			prompts, err = parsePrompts(b.Input)
		}
		if b.Dims == 0 {
			b.Dims = defaultDims
		}
		if err == nil && (b.Dims < 1 || b.Dims > maxDims) {
			err = badRequest("dimensions", "dimensions must be from 1 to 8192.")
		}
		if err != nil {
			writeError(w, err)
			return
		}
		a := s.newPoolingAnswer(prefix, prompts...)
		for i, ids := range prompts {
			a.Data = append(a.Data, result(&b, i, ids))
		}
		s.writePooled(w, r, a)
	}
}

func (s *Server) newPoolingAnswer(prefix string, prompts ...[]uint32) *poolingAnswer {
	a := &poolingAnswer{ID: prefix + newID(), Object: "list", Created: time.Now().Unix(), Model: s.cfg.Models[0], Data: []any{}}
	for _, ids := range prompts {
		a.Usage.Prompt += len(ids)
	}
	a.Usage.Total = a.Usage.Prompt
	return a
}

func (s *Server) writePooled(w http.ResponseWriter, r *http.Request, a any) {
	if drained(modeOf(r)) {
		writeError(w, engineDead())
		return
	}
	raw, err := json.Marshal(a)
	if err != nil {
		panic("BUG: vllmsim: " + err.Error())
	}
	if !breakPlain(w, modeOf(r), raw) {
		writeBody(w, http.StatusOK, raw)
	}
}

func hashOf(ids []uint32) uint64 {
	h := uint64(1)
	for _, id := range ids {
		h = mix(h, uint64(id))
	}
	return h
}

// vector is a unit vector that is a function of the tokens.
func vector(ids []uint32, dims int) []float32 {
	v := make([]float32, dims)
	h, sum := hashOf(ids), 0.0
	for i := range v {
		x := float64(mix(mix(h, uint64(i)), h)>>11)/(1<<52) - 1
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// encode is the vector as encoding_format asks for it: a list, or base64 of little-endian float32.
func (b *poolingBody) encode(v []float32) any {
	if b.Encoding != "base64" {
		return v
	}
	raw, _ := binary.Append(nil, binary.LittleEndian, v) // a fixed-size type
	return base64.StdEncoding.EncodeToString(raw)
}

// texts reads a text, an object with one, or a list of these.
func texts(raw json.RawMessage) []string {
	var any1 any
	if json.Unmarshal(raw, &any1) != nil {
		return nil
	}
	list, ok := any1.([]any)
	if !ok {
		list = []any{any1}
	}
	var out []string
	for _, v := range list {
		out = append(out, textOf(v))
	}
	return out
}

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

// relevance is the part of the query's words that stand in the document, and a little more to tell documents apart.
func relevance(query, document string) float64 {
	words := strings.Fields(strings.ToLower(query))
	hit := 0
	lower := strings.ToLower(document)
	for _, w := range words {
		if strings.Contains(lower, w) {
			hit++
		}
	}
	return (float64(hit) + float64(hashOf(appendTokens(nil, document))%1000)/1000) / float64(len(words)+1)
}

type rerankResult struct {
	Index    int `json:"index"`
	Document struct {
		Text       string  `json:"text"`
		Multimodal *string `json:"multi_modal"`
	} `json:"document"`
	Score float64 `json:"relevance_score"`
}

func (s *Server) handleRerank(w http.ResponseWriter, r *http.Request) {
	var b poolingBody
	if !s.readPlain(w, r, &b, &b.Model, writeError) {
		return
	}
	query, documents := textOf(b.Query), texts(b.Documents)
	if query == "" || documents == nil {
		writeError(w, invalid("missing", "body.query", "Field required", "'<dict>'"))
		return
	}
	results, used := make([]rerankResult, len(documents)), 0
	for i, d := range documents {
		results[i].Index, results[i].Document.Text, results[i].Score = i, d, relevance(query, d)
		used += CountTokens(query) + CountTokens(d)
	}
	sort.SliceStable(results, func(i, j int) bool { return results[i].Score > results[j].Score })
	if b.TopN > 0 {
		results = results[:min(b.TopN, len(results))]
	}
	s.writePooled(w, r, struct {
		ID      string         `json:"id"`
		Model   string         `json:"model"`
		Usage   map[string]int `json:"usage"`
		Results []rerankResult `json:"results"`
	}{"rerank-" + newID(), s.cfg.Models[0], map[string]int{"prompt_tokens": used, "total_tokens": used}, results})
}

func (s *Server) handleScore(w http.ResponseWriter, r *http.Request) {
	var b poolingBody
	if !s.readPlain(w, r, &b, &b.Model, writeError) {
		return
	}
	one, two := firstTexts(b.Queries, b.Data1, b.Text1), firstTexts(b.Documents, b.Items, b.Data2, b.Text2)
	if one == nil || two == nil || len(one) != 1 && len(one) != len(two) {
		writeError(w, badRequest("", "Input lengths must be either 1:1, 1:N or N:N"))
		return
	}
	a := s.newPoolingAnswer("score-")
	for i, d := range two {
		q := one[min(i, len(one)-1)]
		a.Data = append(a.Data, map[string]any{"index": i, "object": "score", "score": relevance(q, d)})
		a.Usage.Prompt += CountTokens(q) + CountTokens(d)
	}
	a.Usage.Total = a.Usage.Prompt
	s.writePooled(w, r, a)
}

func firstTexts(choices ...json.RawMessage) []string {
	for _, raw := range choices {
		if !isNull(raw) {
			return texts(raw)
		}
	}
	return nil
}
