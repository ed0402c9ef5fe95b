package vllmsim

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// rendered is vLLM's GenerateRequest: what an engine would be asked for a body.
type rendered struct {
	RequestID      string          `json:"request_id"`
	TokenIDs       []uint32        `json:"token_ids"`
	Offsets        *int            `json:"token_offsets"`
	Features       *int            `json:"features"`
	Parts          *int            `json:"content_parts"`
	Sampling       sampling        `json:"sampling_params"`
	Model          string          `json:"model"`
	ReasoningEnded *bool           `json:"reasoning_ended"`
	ReasoningArgs  *int            `json:"reasoning_parser_kwargs"`
	ReturnIDs      *bool           `json:"return_token_ids"`
	OutputMode     string          `json:"output_mode"`
	Stream         bool            `json:"stream"`
	StreamOptions  json.RawMessage `json:"stream_options"`
	Salt           *string         `json:"cache_salt"`
	Priority       int             `json:"priority"`
	KVTransfer     *int            `json:"kv_transfer_params"`
	ECTransfer     *int            `json:"ec_transfer_params"`
}

// sampling is the part of vLLM's SamplingParams that a body can change here, and what surrounds it.
type sampling struct {
	Presence    float64 `json:"presence_penalty"`
	Frequency   float64 `json:"frequency_penalty"`
	Repetition  float64 `json:"repetition_penalty"`
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
	MinP        float64 `json:"min_p"`
	Stop        []int   `json:"stop"`
	StopIDs     []int   `json:"stop_token_ids"`
	MaxTokens   int     `json:"max_tokens"`
	OutputKind  int     `json:"output_kind"`
	SkipClone   bool    `json:"skip_clone"`
	BadWords    []int   `json:"bad_words"`
	SkipReading bool    `json:"skip_reading_prefix_cache"`
}

// renderAPI serves the render endpoints, which turn a body into the tokens that an engine would be given.
type renderAPI struct{ enabled bool }

// handler renders what prepare reads. With list the answer has one request for each prompt.
func (a renderAPI) handler(prepare preparer, list bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.enabled {
			writeError(w, newError(http.StatusForbidden, "PermissionDeniedError", "",
				"Scale-out endpoints are disabled. Restart vllm serve with --enable-scale-out"))
			return
		}
		var asked struct {
			Salt    *string         `json:"cache_salt"`
			Options json.RawMessage `json:"stream_options"`
		}
		t, refused, err := readTask(r, func(r *http.Request, raw []byte) (task, *apiError) {
			t, refused := prepare(r, raw)
			if refused == nil {
				json.Unmarshal(raw, &asked) // prepare has found it good
			}
			return t, refused
		})
		if err != nil {
			return // the client is gone
		}
		if refused != nil {
			writeError(w, refused)
			return
		}
		var all []rendered
		for i, ids := range t.prompts {
			one := t.render(ids, t.choices[i*t.n].seq.MaxTokens)
			one.Salt = asked.Salt
			one.StreamOptions = asked.Options
			if len(t.prompts) > 1 {
				one.RequestID += "-" + strconv.Itoa(i)
			}
			all = append(all, one)
		}
		if list {
			writeAtOnce(w, r, all)
			return
		}
		writeAtOnce(w, r, all[0])
	}
}

// render returns what the engine would be asked for one prompt of the job.
func (j *job) render(ids []uint32, limit int) rendered {
	kind := 2 // the whole reply
	if j.stream {
		kind = 1
	}
	return rendered{
		RequestID:  j.id,
		TokenIDs:   ids,
		Model:      j.model,
		OutputMode: "tokens",
		Stream:     j.stream,
		Sampling: sampling{
			Repetition:  1,
			Temperature: 1,
			TopP:        1,
			Stop:        []int{},
			StopIDs:     []int{},
			MaxTokens:   limit,
			OutputKind:  kind,
			SkipClone:   true,
			BadWords:    []int{},
		},
	}
}
