package vllmsim

import "net/http"

func noResponse(id string) *apiError {
	return newError(http.StatusNotFound, "invalid_request_error", "response_id", "Response with id '"+id+"' not found.")
}

// responsesAPI serves /v1/responses. vLLM has neither DELETE nor input_items.
type responsesAPI struct {
	checker
	store *responseStore
	infer *inference
}

func (a responsesAPI) prepare(r *http.Request, raw []byte) (task, *apiError) {
	var b responseBody
	if err := parse(r, raw, &b); err != nil {
		return task{}, err
	}
	like := body{
		Model:       b.Model,
		Stream:      b.Stream,
		MaxTokens:   b.MaxOutput,
		Temperature: b.Temperature,
		CacheSalt:   b.CacheSalt,
		RequestID:   b.RequestID,
		Transfer:    b.Transfer,
	}
	if err := a.check(r, &like); err != nil {
		return task{}, err
	}
	messages, err := a.conversation(&b)
	if err != nil {
		return task{}, err
	}
	f := &responseForm{job: job{chat: true, id: "resp_"}, messages: messages, background: b.Background && !b.Stream}
	if b.Text != nil {
		f.fixed = b.Text.Format.sample()
	}
	f.chooseCall(a.cfg.Script, b.Tools, b.ToolChoice, messages)
	asked := messages
	if b.Instructions != nil {
		asked = append([]message{{Role: "system", Content: *b.Instructions}}, messages...)
	}
	f.prompts, f.replyAt = promptOf(nestedTools(b.Tools), asked, inProgress(b.Input))
	if err := a.prepareLeg(r, &f.job, &like); err != nil {
		return task{}, err
	}
	f.describe(&b)
	if b.Store == nil || *b.Store {
		a.store.put(f)
	}
	t := task{job: &f.job, form: f, ready: f.complete}
	if f.background {
		t.background = func(w http.ResponseWriter) {
			f.setStatus(statusQueued)
			writeJSON(w, http.StatusOK, f.snapshot())
			a.infer.follow(&f.job, f.complete)
		}
	}
	return t, nil
}

// conversation returns the input behind the messages before it.
func (a responsesAPI) conversation(b *responseBody) ([]message, *apiError) {
	items, err := readInput(b.Input)
	if err != nil || b.Previous == nil {
		return items, err
	}
	before := a.store.get(*b.Previous)
	if before == nil {
		return nil, noResponse(*b.Previous)
	}
	return append(before.turn(), items...), nil
}

// get serves GET /v1/responses/{id}.
func (a responsesAPI) get(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if f := a.store.get(id); f != nil {
		writeJSON(w, http.StatusOK, f.snapshot())
		return
	}
	writeError(w, noResponse(id))
}

// cancel serves POST /v1/responses/{id}/cancel.
func (a responsesAPI) cancel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	f := a.store.get(id)
	if f == nil {
		writeError(w, noResponse(id))
		return
	}
	if !f.background || !f.markCancelled() {
		writeError(w, newError(http.StatusBadRequest, "invalid_request_error", "response_id",
			"Cannot cancel a synchronous response."))
		return
	}
	f.driver.cancel(f.choices)
	writeJSON(w, http.StatusOK, f.snapshot())
}
