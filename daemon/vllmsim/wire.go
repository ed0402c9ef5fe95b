package vllmsim

import (
	"encoding/json"
	"strconv"
)

// The answers are written by hand: their key order is vLLM's, and an event of a stream costs no reflection. What stands
// after a reply's text never needs escaping: replies are letters and blanks.

// appendQuoted appends a JSON string.
func appendQuoted(b []byte, s string) []byte {
	q, _ := json.Marshal(s) // a string cannot fail
	return append(b, q...)
}

func appendIDs(b []byte, n int, id func(int) uint32) []byte {
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(id(i)), 10)
	}
	return append(b, ']')
}

// appendPromptIDs appends the ids of a prompt, or null where they were not asked for.
func (j *job) appendPromptIDs(b []byte, prompt int) []byte {
	if !j.tokenIDs {
		return append(b, "null"...)
	}
	ids := j.prompts[prompt]
	return appendIDs(b, len(ids), func(i int) uint32 { return ids[i] })
}

// appendReplyIDs appends the ids of tokens [from, to) of a reply, or null.
func (j *job) appendReplyIDs(b []byte, q *sequence, from, to int) []byte {
	if !j.tokenIDs {
		return append(b, "null"...)
	}
	return appendIDs(b, to-from, func(i int) uint32 { return q.reply.token(from + i) })
}

// appendHead appends what every body and event begins with, up to the choices.
func (j *job) appendHead(b []byte, object string) []byte {
	b = appendQuoted(append(b, `{"id":`...), j.id)
	b = append(append(append(b, `,"object":"`...), object...), `","created":`...)
	b = strconv.AppendInt(b, j.created, 10)
	b = appendQuoted(append(b, `,"model":`...), j.model)
	return append(b, `,"choices":[`...)
}

// appendCounts appends a usage object without its end. vLLM counts a prompt once, however many choices it has.
func (j *job) appendCounts(b []byte) []byte {
	prompt, reply := 0, 0
	for i, q := range j.seqs {
		if i%j.n == 0 {
			prompt += q.prompt
		}
		reply += int(q.produced.Load())
	}
	b = strconv.AppendInt(append(b, `"usage":{"prompt_tokens":`...), int64(prompt), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(prompt+reply), 10)
	return strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(reply), 10)
}

// cacheUse is the number of prompt tokens found cached, and of those in full blocks that were made.
func (j *job) cacheUse() (cached, created int) {
	for i := 0; i < len(j.seqs); i += j.n {
		hit := int(j.seqs[i].hit.Load())
		cached += hit
		created += j.seqs[i].prompt/BlockTokens*BlockTokens - hit
	}
	return cached, created
}

// appendBody appends the body of a plain answer.
func (j *job) appendBody(b []byte) []byte {
	if j.chat {
		b = j.appendHead(b, "chat.completion")
	} else {
		b = j.appendHead(b, "text_completion")
	}
	for i, q := range j.seqs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(b, `{"index":`...), int64(i), 10)
		b = j.appendChoice(b, i, q)
	}
	cached, created := j.cacheUse()
	b = append(b, `],"service_tier":null,"system_fingerprint":"`+systemFingerprint+`",`...)
	b = strconv.AppendInt(append(j.appendCounts(b), `,"prompt_tokens_details":{"cached_tokens":`...), int64(cached), 10)
	if j.chat {
		b = strconv.AppendInt(append(b, `,"created_cache_tokens":`...), int64(created), 10)
	} else {
		b = append(b, `,"created_cache_tokens":null`...)
	}
	b = append(b, `,"multimodal_tokens":null},"completion_tokens_details":null}`...)
	if j.chat {
		b = j.appendPromptIDs(append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...), 0)
		b = append(b, `,"prompt_text":null`...)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

func (j *job) appendChoice(b []byte, i int, q *sequence) []byte {
	n := int(q.produced.Load())
	switch {
	case j.tool != "":
		b = append(b, `,"message":{"role":"assistant","content":null,"refusal":null,"annotations":null,"audio":null,"function_call":null,"tool_calls":[{"id":`...)
		b = append(appendQuoted(b, j.callID(i)), `,"type":"function","function":{"name":`...)
		b = append(appendQuoted(b, j.tool), `,"arguments":"`...)
		b = append(q.reply.appendText(b, 0, n), `"}}],"reasoning":null}`...)
	case j.chat:
		b = q.reply.appendText(append(b, `,"message":{"role":"assistant","content":"`...), 0, n)
		b = append(b, `","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null}`...)
	default:
		b = append(q.reply.appendText(append(b, `,"text":"`...), 0, n), '"')
	}
	b = append(append(b, `,"logprobs":null,"finish_reason":"`...), j.finishName(finish(q.ended.Load()))...)
	b = j.appendReplyIDs(append(b, `","stop_reason":null,"token_ids":`...), q, 0, n)
	if !j.chat {
		b = j.appendPromptIDs(append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...), i/j.n)
	}
	return append(b, `,"routed_experts":null}`...)
}
