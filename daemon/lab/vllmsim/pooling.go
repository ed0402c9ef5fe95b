package vllmsim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// defaultDims is the length of a vector where the request names none.
const defaultDims = 64

// maxDims bounds what a request may ask for.
const maxDims = 8192

// poolingBody is what the simulator reads of the bodies of a pooling model's endpoints.
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

// newPoolingAnswer returns an answer without results for the given prompts.
func newPoolingAnswer(prefix, model string, prompts ...[]uint32) *poolingAnswer {
	a := &poolingAnswer{ID: prefix + newID(), Object: "list", Created: time.Now().Unix(), Model: model, Data: []any{}}
	for _, ids := range prompts {
		a.Usage.Prompt += len(ids)
	}
	a.Usage.Total = a.Usage.Prompt
	return a
}

// poolingAPI serves a pooling model's endpoints. It answers at once: such a request is one prefill that nothing
// follows, and vLLM caches no prefixes for most such models.
type poolingAPI struct{ checker }

func (a poolingAPI) routes(m router) {
	m.on("/v1/embeddings", "POST", a.handler("embd-", func(b *poolingBody, i int, ids []uint32) any {
		return map[string]any{"index": i, "object": "embedding", "embedding": b.encode(vector(ids, b.Dims))}
	}))
	m.on("/pooling", "POST", a.handler("pool-", func(b *poolingBody, i int, ids []uint32) any {
		return map[string]any{"index": i, "object": "pooling", "data": b.encode(vector(ids, b.Dims))}
	}))
	m.on("/classify", "POST", a.handler("classify-", func(_ *poolingBody, i int, ids []uint32) any {
		p := float64(hashTokens(ids)%1000) / 1000
		label := "LABEL_0"
		if p < 0.5 {
			label = "LABEL_1"
		}
		return map[string]any{"index": i, "label": label, "probs": []float64{p, 1 - p}, "num_classes": 2}
	}))
}

// handler answers with one result for each input.
func (a poolingAPI) handler(prefix string, result func(b *poolingBody, i int, ids []uint32) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b poolingBody
		if !a.parsePlain(w, r, &b, &b.Model, writeError) {
			return
		}
		prompts, err := b.prompts()
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
		answer := newPoolingAnswer(prefix, a.cfg.Models[0], prompts...)
		for i, ids := range prompts {
			answer.Data = append(answer.Data, result(&b, i, ids))
		}
		writeAtOnce(w, r, answer)
	}
}

// prompts returns what is to be embedded: the chat, or else the input.
func (b *poolingBody) prompts() ([][]uint32, *apiError) {
	if b.Messages != nil {
		return [][]uint32{chatTokens(nil, b.Messages, true)}, nil
	}
	return parsePrompts(b.Input)
}

func hashTokens(ids []uint32) uint64 {
	h := uint64(1)
	for _, id := range ids {
		h = engine.Mix(h, uint64(id))
	}
	return h
}

// vector returns a unit vector that is a function of the tokens.
func vector(ids []uint32, dims int) []float32 {
	v := make([]float32, dims)
	h := hashTokens(ids)
	sum := 0.0
	for i := range v {
		x := float64(engine.Mix(engine.Mix(h, uint64(i)), h)>>11)/(1<<52) - 1
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

// encode returns the vector as encoding_format asks for it: a list, or base64 of little-endian float32.
func (b *poolingBody) encode(v []float32) any {
	if b.Encoding != "base64" {
		return v
	}
	raw, _ := binary.Append(nil, binary.LittleEndian, v) // a fixed-size type
	return base64.StdEncoding.EncodeToString(raw)
}
