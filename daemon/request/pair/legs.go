package pair

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Transfer is one request's way from a prefiller to a decoder.
type Transfer struct {
	Connector Connector
	Kind      prompt.Kind // of the body
	ID        string      // that no other transfer has (mooncake); a client's id may come twice
	Host      string      // of the prefiller, without port
	Bootstrap int         // the port of the prefiller's bootstrap server
	Engine    string      // the prefiller's engine_id (mooncake)
	Room      uint64      // a number of 62 bits that no other request has (sglang); further prompts have the next ones
	Prompts   int         // of the body
}

// nixlAsk asks a prefiller to keep the KV for a decoder.
const nixlAsk = `{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,` +
	`"remote_host":null,"remote_port":null}`

// Prefill returns the body of the first leg: the prompt, an answer of one token, and what the prefiller is to do with
// the KV.
func (t *Transfer) Prefill(body []byte) []byte {
	f := &fields{}
	if ask := t.Connector.row().ask; ask != nil {
		ask(t, f)
	}
	return t.short(body, f)
}

// Free returns the body of a second leg whose answer nobody wants: it has a decoder read what the prefiller keeps. An
// earlier one may have read it already, so that what is read now may be of another request. With a salt that nobody
// knows the decoder's cache gives it to no other request.
func (t *Transfer) Free(body, handed []byte) []byte {
	f := fields{}
	return t.short(body, f.add(keyParams, string(handed)).add("cache_salt", quoted(rand.Text())))
}

// short returns a body whose answer is one token, with further fields.
func (t *Transfer) short(body []byte, more *fields) []byte {
	f := fields{}
	switch t.Kind {
	case prompt.Chat:
		f.add("max_tokens", "1").add("max_completion_tokens", "1").add("min_tokens", "0").add("n", "1")
	case prompt.Completion, prompt.Tokens:
		f.add("max_tokens", "1").add("min_tokens", "0").add("n", "1")
	case prompt.Responses:
		f.add("max_output_tokens", "1").add("min_tokens", "0").add("store", "false").add("background", "false")
	default:
		f.add("max_tokens", "1")
		if thinks(body) {
			f.add("thinking", "null")
		}
	}
	f.add("stream", "false")
	if t.Kind == prompt.Chat || t.Kind == prompt.Completion || t.Kind == prompt.Tokens {
		f.add("stream_options", "null")
	}
	f.names, f.values = append(f.names, more.names...), append(f.values, more.values...)
	return t.with(&f, body)
}

// with returns a body with fields in place of its own of the same names.
func (t *Transfer) with(f *fields, body []byte) []byte {
	if t.Kind == prompt.Tokens && len(f.names) > 0 {
		f = f.sampled(body)
	}
	return f.behind(body)
}

// CutByAnswer reports whether the engine may cut the prompt of a body to what the context leaves beside the answer, as
// vLLM before 0.32 does: a first leg, whose answer is one token, would have another prompt than the second.
func CutByAnswer(body []byte) bool {
	var said struct {
		Tokens     int    `json:"truncate_prompt_tokens"`
		Truncation string `json:"truncation"`
	}
	if !bytes.Contains(body, []byte("trunca")) && !escapesLetter(body) {
		return false
	}
	return json.Unmarshal(body, &said) != nil || said.Tokens < 0 || said.Truncation == "auto"
}

// NamesOwn reports whether the client of token ids names kv_transfer_params itself, which no worker gets. vLLM reads
// those from sampling_params, among the client's own fields, so that what such a client gets is computed at one worker.
func NamesOwn(k prompt.Kind, body []byte) bool {
	return k == prompt.Tokens && bytes.Contains(body, []byte(keyParams))
}

// thinks reports whether a body of messages has a budget for thinking. vLLM (0.32) refuses such a budget with an answer
// of one token. Without the budget the prompt is the same; with thinking switched off it would be another.
func thinks(body []byte) bool {
	var said struct {
		Thinking struct {
			Type string `json:"type"`
		} `json:"thinking"`
	}
	return bytes.Contains(body, []byte("thinking")) && json.Unmarshal(body, &said) == nil &&
		said.Thinking.Type == "enabled"
}

// Decode returns the body of the second leg. handed are the kv_transfer_params of the prefiller's answer, as [Handed]
// returns them; nil = there are none.
func (t *Transfer) Decode(body, handed []byte) []byte {
	f := &fields{}
	if tell := t.Connector.row().tell; tell != nil {
		tell(t, f, handed)
	}
	return t.with(f, body)
}

// askMooncake has a prefiller send the KV. A prefill that ends by its first token, and not by its length, is sent to
// nobody: the decoder waits in vain. (vLLM's mooncake_connector_proxy.py, with the transfer_id that it has since 2026.)
func (t *Transfer) askMooncake(f *fields) {
	f.add("ignore_eos", "true").add("stop_token_ids", "null")
	f.add(keyParams, `{"do_remote_decode":true,"do_remote_prefill":false,"transfer_id":`+t.transferID()+`}`)
}

// tellMooncake tells a decoder who sends it the KV.
func (t *Transfer) tellMooncake(f *fields, _ []byte) {
	if t.Engine != "" {
		f.add(keyParams, `{"do_remote_decode":false,"do_remote_prefill":true,"remote_bootstrap_addr":`+
			quoted("http://"+net.JoinHostPort(t.Host, strconv.Itoa(t.Bootstrap)))+`,"remote_engine_id":`+quoted(t.Engine)+
			`,"transfer_id":`+t.transferID()+`}`)
	}
}

// meet adds where SGLang's two workers meet: of several prompts a room each, in lists as SGLang's router has them
// (pd_router.rs). The engine itself counts on from a single room.
func (t *Transfer) meet(f *fields) {
	if t.Host == "" {
		return
	}
	list := func(value func(i uint64) string) string {
		if t.Prompts <= 1 {
			return value(0)
		}
		all := []byte{'['}
		for i := range t.Prompts {
			all = append(append(all, value(uint64(i))...), ',')
		}
		return string(append(all[:len(all)-1], ']'))
	}
	f.add("bootstrap_host", list(func(uint64) string { return quoted(t.Host) }))
	f.add("bootstrap_port", list(func(uint64) string { return strconv.Itoa(t.Bootstrap) }))
	f.add("bootstrap_room", list(func(i uint64) string { return strconv.FormatUint(t.Room+i, 10) }))
}

func (t *Transfer) transferID() string { return quoted("xfer-" + t.ID) }

// keyParams has what vLLM's connectors tell each other.
const keyParams = "kv_transfer_params"

// fields take the place of a body's own of the same names, and stand behind its last field.
type fields struct{ names, values []string }

func (f *fields) add(name, value string) *fields {
	f.names, f.values = append(f.names, name), append(f.values, value)
	return f
}

// sampled returns the fields as a body of token ids has them: how an answer is made stands in its sampling_params.
// Older releases of vLLM look there for kv_transfer_params, too, and read none at the top level.
func (f *fields) sampled(body []byte) *fields {
	const inside, further = "sampling_params", "extra_args"
	var said map[string]json.RawMessage
	var sampling, extra map[string]json.RawMessage
	if json.Unmarshal(Alone(body), &said) != nil || json.Unmarshal(said[inside], &sampling) != nil || sampling == nil {
		return f // the worker refuses it
	}
	_ = json.Unmarshal(sampling[further], &extra) // what is no object is refused, too
	top := &fields{}
	for i, name := range f.names {
		switch name {
		case "max_tokens", "min_tokens", "n", "ignore_eos", "stop_token_ids":
			sampling[name] = json.RawMessage(f.values[i])
			continue
		case keyParams:
			if extra == nil {
				extra = map[string]json.RawMessage{}
			}
			extra[name] = json.RawMessage(f.values[i])
			sampling[further], _ = json.Marshal(extra) // of values that were read
		}
		top.add(name, f.values[i])
	}
	text, _ := json.Marshal(sampling)
	return top.add(inside, string(text))
}

// behind returns a body, which is an object in JSON, with the fields as its last ones. vLLM's Rust front end refuses a
// field that comes twice. A body that is no object stays as it is: a worker answers 400.
func (f *fields) behind(body []byte) []byte {
	body = Without(body, f.names...)
	start := bytes.TrimRight(body, " \t\r\n")
	if len(f.names) == 0 || len(start) == 0 || start[len(start)-1] != '}' {
		return body
	}
	start = bytes.TrimRight(start[:len(start)-1], " \t\r\n")
	size := len(start) + 2
	for i, name := range f.names {
		size += len(name) + len(f.values[i]) + len(`,"":`)
	}
	out := append(make([]byte, 0, size), start...)
	between := !bytes.HasSuffix(start, []byte("{"))
	for i, name := range f.names {
		if between {
			out = append(out, ',')
		}
		between = true
		out = append(append(append(append(out, '"'), name...), `":`...), f.values[i]...)
	}
	return append(out, '}')
}

// Handed returns the kv_transfer_params of a prefiller's answer as it wrote them, nil if there are none.
func Handed(answer []byte) []byte {
	var said struct {
		Params json.RawMessage `json:"kv_transfer_params"`
	}
	if json.Unmarshal(answer, &said) != nil || len(said.Params) == 0 || said.Params[0] != '{' {
		return nil
	}
	return said.Params
}

// EngineHanded returns the engine_id that kv_transfer_params name, "" if they name none.
func EngineHanded(params []byte) string {
	var said struct {
		Engine string `json:"remote_engine_id"`
	}
	_ = json.Unmarshal(params, &said) // what is no text names none
	return said.Engine
}

// EngineOf returns the engine_id of a rank, by the answer of a mooncake bootstrap server to /query; "" = it names none.
func EngineOf(answer []byte, rank int) string {
	var said map[string]struct {
		Engine string `json:"engine_id"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return ""
	}
	return said[strconv.Itoa(rank)].Engine
}

func quoted(s string) string {
	text, _ := json.Marshal(s) // a string cannot fail
	return string(text)
}
