package vllmsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

const (
	sessionHeader       = "X-Amzn-SageMaker-Session-Id"
	newSessionHeader    = "X-Amzn-SageMaker-New-Session-Id"
	closedSessionHeader = "X-Amzn-SageMaker-Closed-Session-Id"
	sessionsDisabled    = "Invalid payload. stateful sessions not enabled"
)

// sessionAPI serves /invocations: what manages a session, or an inference that may name one.
type sessionAPI struct {
	enabled bool
	store   *sessionStore
	infer   http.HandlerFunc
}

func (a sessionAPI) serve(w http.ResponseWriter, r *http.Request) {
	head := make([]byte, requestHead)
	n, err := io.ReadFull(r.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return // the client is gone
	}
	head = head[:n]
	kind, managed := requestType(head)
	switch {
	case kind == requestOpenPayload && a.enabled:
		a.openPayload(w, r, head)
	case managed:
		a.manage(w, r, kind, head)
	default:
		if r, ok := a.admit(w, r); ok {
			r.Body = restOf(head, r.Body)
			a.infer(w, r)
		}
	}
}

// restOf returns a body that has been read up to the end of head.
func restOf(head []byte, body io.ReadCloser) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), body), body}
}

// admit lets an inference in if it names no session or a live one. Its prompt then begins with the session's payload.
func (a sessionAPI) admit(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return r, true
	}
	if !a.enabled {
		refuseSession(w, http.StatusBadRequest, sessionsDisabled+", "+sessionHeader+" header not supported")
		return r, false
	}
	if id == requestNew {
		return r, true // vLLM opens sessions by the body alone
	}
	v, err := a.store.find(id)
	if err != nil {
		refuseSession(w, http.StatusBadRequest, "Bad request: "+err.Error())
		return r, false
	}
	a.store.countUse()
	if v == nil || v.tokens == nil {
		return r, true
	}
	return withPayload(r, v.tokens), true
}

// manage opens or closes a session. What is no such request is refused as vLLM's validation does.
func (a sessionAPI) manage(w http.ResponseWriter, r *http.Request, kind string, head []byte) {
	raw, err := io.ReadAll(io.LimitReader(restOf(head, r.Body), 1<<20))
	if err != nil {
		return // the client is gone
	}
	payload := a.enabled && kind == requestClosePayload
	if text := invalidRequest(raw, kind); text != "" && !payload {
		refuseSession(w, http.StatusBadRequest, text)
		return
	}
	if !a.enabled {
		refuseSession(w, http.StatusBadRequest, sessionsDisabled)
		return
	}
	if kind == requestNew {
		a.open(w, r, &session{}, newSessionHeader)
		return
	}
	a.close(w, r)
}

// open stores a session, and names it under the given field. Two faults strike here alone.
func (a sessionAPI) open(w http.ResponseWriter, r *http.Request, v *session, field string) {
	err := errors.New("[Errno 28] No space left on device")
	if modeOf(r) != FaultOpenError {
		err = a.store.open(v)
	}
	if err != nil {
		refuseSession(w, http.StatusFailedDependency, "Failed to create session: "+err.Error())
		return
	}
	if modeOf(r) != FaultOpenBare {
		w.Header().Set(field, v.id+"; Expires="+v.expires.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if v.sum == "" {
		writeText(w, "Session "+v.id+" created")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"session": v.id, "bytes": v.bytes, "sha256": v.sum})
}

// openPayload takes a body of any length as what later prompts of the session see. It is counted and hashed, not
// kept: the hash is all that answers depend on.
func (a sessionAPI) openPayload(w http.ResponseWriter, r *http.Request, head []byte) {
	sum := sha256.New()
	in := struct{ io.Reader }{restOf(head, r.Body)}
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, in, make([]byte, 256<<10))
	if err != nil {
		return // the client is gone, and nothing is kept
	}
	digest := sum.Sum(nil)
	label, length := binary.BigEndian.Uint64(digest), int(min(1+n/payloadTokenBytes, maxPayloadTokens))
	v := &session{
		bytes:  n,
		sum:    hex.EncodeToString(digest),
		tokens: engine.AppendTokens(nil, engine.TextOfTokens(label, length)),
	}
	a.open(w, r, v, sessionHeader)
}

// close ends the session that the request names.
func (a sessionAPI) close(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id == "" || id == requestNew {
		word := id
		if id == "" {
			word = "None"
		}
		refuseSession(w, http.StatusFailedDependency, "Failed to close session: invalid session_id: "+word)
		return
	}
	if _, err := a.store.find(id); err != nil {
		refuseSession(w, http.StatusBadRequest, "Bad request: "+err.Error())
		return
	}
	if err := a.store.remove(id); err != nil { // expired
		refuseSession(w, http.StatusFailedDependency, "Failed to close session: "+err.Error())
		return
	}
	w.Header().Set(closedSessionHeader, id)
	writeText(w, "Session "+id+" closed")
}

// refuseSession writes vLLM's error for what goes wrong before a prompt is looked at: the status's own words as the
// type.
func refuseSession(w http.ResponseWriter, status int, message string) {
	writeError(w, newError(status, http.StatusText(status), "", message))
}

// writeText answers 200 without a Content-Type, as vLLM's session handlers do.
func writeText(w http.ResponseWriter, text string) {
	w.Header()["Content-Type"] = nil
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	io.WriteString(w, text)
}
