package vllmsim

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
)

// prepareLeg prepares a job that may be one side of a pair.
func (c checker) prepareLeg(r *http.Request, j *job, b *body) *apiError {
	if err := c.prepareJob(r, j, b); err != nil {
		return err
	}
	c.prepareHints(j, b)
	return c.prepareTransfer(r, j, b)
}

// prepareTransfer makes a job one side of a pair if its parameters ask for it. vLLM logs wrong parameters and computes
// the prompt; here they are refused, so that a router's mistake is seen.
func (c checker) prepareTransfer(r *http.Request, j *job, b *body) *apiError {
	p := b.Transfer
	if c.cfg.Connector == "" || p == nil || !p.RemotePrefill && !p.RemoteDecode {
		return nil
	}
	if wrong := c.wrongTransfer(j, p); wrong != "" {
		return badRequest("kv_transfer_params", wrong)
	}
	ch := j.choices[0]
	if p.RemotePrefill && !callPrefill(p, heldPath) {
		if c.cfg.LoadFailure == LoadFail {
			j.unloaded = newError(http.StatusInternalServerError, "InternalServerError", "", "Internal server error")
		}
		return nil
	}
	if p.RemotePrefill {
		ch.seq.Remote = ch.seq.PromptTokens()
		ch.side = newPuller(r.Context(), p, c.cfg)
		return nil
	}
	host, port := localAddr(r)
	ch.seq.Keep = true
	ch.side = &pin{of: c.pins, driver: j.driver, choice: ch, params: transferParams{
		RemotePrefill: true,
		EngineID:      c.pins.engine,
		RequestID:     newID(),
		Host:          host,
		Port:          port,
		TPSize:        1,
		DCPSize:       1,
		PPSize:        1,
		Tokens:        ch.seq.PromptTokens(),
		Mode:          "pull",
	}}
	return nil
}

// wrongTransfer returns what is wrong with the parameters, "" for nothing.
func (c checker) wrongTransfer(j *job, p *transferParams) string {
	switch {
	case p.RemotePrefill && p.RemoteDecode:
		return "do_remote_prefill and do_remote_decode are both true; set one."
	case len(j.choices) != 1:
		return fmt.Sprintf("The request has %d prompts and choices; a pair serves one.", len(j.choices))
	case p.RemoteDecode:
		return c.wrongPrefill(j, p)
	}
	return c.wrongDecode(j, p)
}

// wrongPrefill returns what is wrong with the parameters of a prefill, "" for nothing.
func (c checker) wrongPrefill(j *job, p *transferParams) string {
	switch {
	case c.cfg.Role == RoleDecode:
		return "This worker only decodes; send do_remote_decode to a prefill worker."
	case j.stream:
		return "The prefill of a pair streams; set stream to false."
	case j.choices[0].seq.MaxTokens != 1:
		return fmt.Sprintf("The prefill of a pair has max_tokens=%d; set 1.", j.choices[0].seq.MaxTokens)
	case len(p.Blocks) > 0 || p.EngineID != "" || p.Host != "" || p.Port != 0:
		return "do_remote_decode names a remote engine; leave its fields null."
	}
	return ""
}

// wrongDecode returns what is wrong with the parameters of a decode, "" for nothing.
func (c checker) wrongDecode(j *job, p *transferParams) string {
	switch {
	case c.cfg.Role == RolePrefill:
		return "This worker only prefills; send do_remote_prefill to a decode worker."
	case p.EngineID == "" || p.RequestID == "" || p.Host == "" || p.Port < 1 || p.Port > 65535:
		return "do_remote_prefill lacks remote_engine_id, remote_request_id, remote_host or remote_port; " +
			"copy them from the prefill's answer."
	}
	need := (j.choices[0].seq.PromptTokens() + c.cfg.BlockTokens - 1) / c.cfg.BlockTokens
	if len(p.Blocks) != 1 || len(p.Blocks[0]) != need {
		return fmt.Sprintf("remote_block_ids is %v and the prompt has %d blocks; copy them from the prefill of this prompt.",
			p.Blocks, need)
	}
	return ""
}

// localAddr returns the host and port at which a request has come in. vLLM names its side channel; here decoders use
// the worker's only port.
func localAddr(r *http.Request) (host string, port int) {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		h, p, _ := net.SplitHostPort(a.String())
		host = h
		port, _ = strconv.Atoi(p)
	}
	return host, port
}

// appendTransfer appends the kv_transfer_params of an answer.
func appendTransfer(b []byte, ch *choice) []byte {
	if ch.side != nil {
		if p := ch.side.answer(ch); p != nil {
			raw, _ := json.Marshal(p) // strings and numbers
			return append(b, raw...)
		}
	}
	return append(b, "null"...)
}
