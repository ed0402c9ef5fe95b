package vllmsim

import (
	"encoding/json"
	"net/http"
)

// chatAPI reads chats, completions and what /invocations takes for either.
type chatAPI struct{ checker }

// prepareEither reads the body of /invocations: one with messages is a chat.
func (a chatAPI) prepareEither(r *http.Request, raw []byte) (task, *apiError) {
	var probe struct {
		Messages json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(raw, &probe) == nil && probe.Messages != nil {
		return a.prepareChat(r, raw)
	}
	return a.prepareCompletion(r, raw)
}

func (a chatAPI) prepareChat(r *http.Request, raw []byte) (task, *apiError) {
	var b body
	if err := parse(r, raw, &b); err != nil {
		return task{}, err
	}
	if b.Messages == nil {
		return task{}, missing("body.messages")
	}
	f := &chatForm{job: job{chat: true, id: "chatcmpl-"}}
	if err := a.check(r, &b); err != nil {
		return task{}, err
	}
	f.fixed = b.Format.sample()
	var tools []tool
	if !isNull(b.Tools) && json.Unmarshal(b.Tools, &tools) != nil {
		return task{}, invalid("list_type", "body.tools", "Input should be a valid list", "'<value>'")
	}
	f.chooseCall(a.cfg.Script, tools, b.ToolChoice, b.Messages)
	if b.Continue && (b.Generate == nil || *b.Generate) {
		return task{}, badRequest("", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	}
	f.prompts, f.replyAt = promptOf(b.Tools, b.Messages, b.Continue)
	return a.task(r, f, &b)
}

func (a chatAPI) prepareCompletion(r *http.Request, raw []byte) (task, *apiError) {
	var b body
	if err := parse(r, raw, &b); err != nil {
		return task{}, err
	}
	f := &chatForm{job: job{id: "cmpl-", fixed: b.Format.sample()}}
	if err := a.check(r, &b); err != nil {
		return task{}, err
	}
	prompts, err := parsePrompts(b.Prompt)
	if err != nil {
		return task{}, err
	}
	f.prompts, f.completes = prompts, true
	_ = json.Unmarshal(b.Prompt, &f.text) // else it is a list
	if b.MaxTokens == nil {
		sixteen := 16 // OpenAI's default for completions, kept by vLLM
		b.MaxTokens = &sixteen
	}
	return a.task(r, f, &b)
}

// task completes a form whose prompts are known.
func (a chatAPI) task(r *http.Request, f *chatForm, b *body) (task, *apiError) {
	if o := b.StreamOptions; o != nil {
		f.usage = o.IncludeUsage
		f.everyUsage = o.ContinuousUsage
	}
	f.sglang = a.cfg.Engine == EngineSGLang
	if f.sglang {
		f.id = ""
	}
	return task{job: &f.job, form: f}, a.prepareLeg(r, &f.job, b)
}
