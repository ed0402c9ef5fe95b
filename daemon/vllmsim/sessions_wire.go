package vllmsim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// The words of a body's requestType. The first two are vLLM's, the others those of a model that is given large input once.
const (
	requestNew          = "NEW_SESSION"
	requestClose        = "CLOSE"
	requestOpenPayload  = "open_session"
	requestClosePayload = "close_session"
)

const (
	sessionHeader       = "X-Amzn-SageMaker-Session-Id"
	newSessionHeader    = "X-Amzn-SageMaker-New-Session-Id"
	closedSessionHeader = "X-Amzn-SageMaker-Closed-Session-Id"
	adapterHeader       = "X-Amzn-SageMaker-Adapter-Identifier"
	sessionsDisabled    = "Invalid payload. stateful sessions not enabled"
)

// requestHead is how far into a body its requestType is looked for, and how long one that manages a session may be
// but for a payload.
const requestHead = 4 << 10

// handleInvocations is /invocations: what manages a session, or an inference that may name one.
func (s *Server) handleInvocations(w http.ResponseWriter, r *http.Request) {
	head := make([]byte, requestHead)
	n, err := io.ReadFull(r.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return // the client is gone
	}
	head = head[:n]
	kind, managed := requestType(head)
	switch {
	case kind == requestOpenPayload && s.cfg.Sessions:
		s.openPayload(w, r, head)
	case managed:
		s.manage(w, r, kind, head)
	default:
		if r, ok := s.seen(w, r); ok {
			r.Body = restOf(head, r.Body)
			s.inference(s.prepareEither, writeError)(w, r)
		}
	}
}

// restOf is a body that has been read up to the end of head.
func restOf(head []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), body), body}
}

// requestType finds the field in the first bytes of a body; ok is false if it is not there.
func requestType(head []byte) (kind string, ok bool) {
	if !bytes.Contains(head, []byte(`"requestType"`)) {
		return "", false
	}
	d := json.NewDecoder(bytes.NewReader(head))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", false
	}
	for {
		key, err := d.Token()
		if err != nil {
			return "", false
		}
		var value json.RawMessage
		if key == "requestType" {
			t, err := d.Token()
			kind, _ := t.(string)
			return kind, err == nil
		}
		if d.Decode(&value) != nil {
			return "", false
		}
	}
}

// seen lets an inference in that names no session or a live one, whose payload it is to see.
func (s *Server) seen(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return r, true
	}
	if !s.cfg.Sessions {
		refuseSession(w, http.StatusBadRequest, sessionsDisabled+", "+sessionHeader+" header not supported")
		return r, false
	}
	if id == requestNew {
		return r, true // vLLM opens sessions by the body alone
	}
	h, err := s.sessions.Load().find(id)
	if err != nil {
		refuseSession(w, http.StatusBadRequest, "Bad request: "+err.Error())
		return r, false
	}
	s.sessions.Load().used()
	if h == nil || h.tokens == nil {
		return r, true
	}
	return r.WithContext(context.WithValue(r.Context(), payloadKey{}, h.tokens)), true
}

type payloadKey struct{}

// payloadOf is what a prompt begins with whose session has a payload.
func payloadOf(r *http.Request) []uint32 {
	tokens, _ := r.Context().Value(payloadKey{}).([]uint32)
	return tokens
}

// manage opens or closes a session. What is no such request is refused as vLLM's validation does.
func (s *Server) manage(w http.ResponseWriter, r *http.Request, kind string, head []byte) {
	raw, err := io.ReadAll(io.LimitReader(restOf(head, r.Body), 1<<20))
	if err != nil {
		return // the client is gone
	}
	payload := s.cfg.Sessions && kind == requestClosePayload
	if text := invalidRequest(raw, kind); text != "" && !payload {
		refuseSession(w, http.StatusBadRequest, text)
		return
	}
	if !s.cfg.Sessions {
		refuseSession(w, http.StatusBadRequest, sessionsDisabled)
		return
	}
	if kind == requestNew {
		s.openSession(w, r, &held{}, newSessionHeader)
		return
	}
	s.closeSession(w, r)
}

func (s *Server) closeSession(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	t := s.sessions.Load()
	if id == "" || id == requestNew {
		word := id
		if id == "" {
			word = "None"
		}
		refuseSession(w, http.StatusFailedDependency, "Failed to close session: invalid session_id: "+word)
		return
	}
	if _, err := t.find(id); err != nil {
		refuseSession(w, http.StatusBadRequest, "Bad request: "+err.Error())
		return
	}
	if err := t.close(id); err != nil { // expired
		refuseSession(w, http.StatusFailedDependency, "Failed to close session: "+err.Error())
		return
	}
	w.Header().Set(closedSessionHeader, id)
	writeText(w, "Session "+id+" closed")
}

// openSession keeps a session, and says so under the given field's name. Two faults strike here alone.
func (s *Server) openSession(w http.ResponseWriter, r *http.Request, h *held, field string) {
	err := errors.New("[Errno 28] No space left on device")
	if modeOf(r) != FaultOpenError {
		err = s.sessions.Load().open(h)
	}
	if err != nil {
		refuseSession(w, http.StatusFailedDependency, "Failed to create session: "+err.Error())
		return
	}
	if modeOf(r) != FaultOpenBare {
		w.Header().Set(field, h.id+"; Expires="+h.expires.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if h.sum == "" {
		writeText(w, "Session "+h.id+" created")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"session": h.id, "bytes": h.bytes, "sha256": h.sum})
}

// openPayload takes a body of any length as what later prompts of the session see. It is counted and hashed, not kept: the
// hash is all that answers depend on.
func (s *Server) openPayload(w http.ResponseWriter, r *http.Request, head []byte) {
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{restOf(head, r.Body)}, make([]byte, 256<<10))
	if err != nil {
		return // the client is gone, and nothing is kept
	}
	digest := sum.Sum(nil)
	s.openSession(w, r, &held{
		bytes: n, sum: hex.EncodeToString(digest),
		tokens: appendTokens(nil, TextOfTokens(binary.BigEndian.Uint64(digest), int(min(1+n/payloadTokenBytes, maxPayloadTokens)))),
	}, sessionHeader)
}

// refuseSession is vLLM's error for what goes wrong before a prompt is looked at: the status's own words as the type.
func refuseSession(w http.ResponseWriter, status int, message string) {
	writeError(w, newError(status, http.StatusText(status), "", message))
}

// writeText answers 200 without a Content-Type, as vLLM's session handlers do.
func writeText(w http.ResponseWriter, text string) {
	w.Header()["Content-Type"] = nil
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	io.WriteString(w, text)
}

// invalidRequest is what pydantic says of a body with a requestType, "" if it is one of vLLM's two.
func invalidRequest(raw []byte, kind string) string {
	type context struct {
		Expected string `json:"expected"`
	}
	type detail struct {
		Type  string          `json:"type"`
		Loc   []string        `json:"loc"`
		Msg   string          `json:"msg"`
		Input json.RawMessage `json:"input"`
		Ctx   *context        `json:"ctx,omitempty"`
	}
	var list []detail
	d := json.NewDecoder(bytes.NewReader(raw))
	d.Token() // requestType has seen the brace
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return "JSON decode error: " + err.Error()
		}
		switch name, _ := key.(string); {
		case name != "requestType":
			list = append(list, detail{"extra_forbidden", []string{name}, "Extra inputs are not permitted", value, nil})
		case kind != requestNew && kind != requestClose:
			list = append(list, detail{"enum", []string{name}, "Input should be 'NEW_SESSION' or 'CLOSE'", value, &context{"'NEW_SESSION' or 'CLOSE'"}})
		}
	}
	if len(list) == 0 {
		return ""
	}
	b, _ := json.Marshal(list) // strings, and what was JSON before
	return string(b)
}
