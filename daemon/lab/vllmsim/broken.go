package vllmsim

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// garbage stands in a stream where an event should: bytes that are neither UTF-8 nor lines.
const garbage = "\xff\xfe\x00\x00{]}\x1b[2J\r\rdata:{\"choices\":[{\n\n:\x80\n\nevent data: \x00\n\n"

// breakPlain answers with body, broken in the way of mode. It returns false if the mode breaks no plain answer.
func breakPlain(w http.ResponseWriter, mode string, body []byte) bool {
	head := func(more string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: application/json\r\n"+
			"content-length: %d\r\n%s\r\n", len(body), more)
	}
	half := string(body[:len(body)/2])
	switch mode {
	case FaultErrorEvent:
		writeError(w, engineDead())
	case FaultGarbage:
		sendRaw(w, garbage, byFIN)
	case FaultBadFrame:
		sendRaw(w, head(fmt.Sprintf("content-length: %d\r\n", len(body)+7))+string(body), byFIN)
	case FaultShort:
		sendRaw(w, head("")+half, byFIN)
	case FaultHalfClose:
		sendRaw(w, head("")+half, byHalfFIN)
	default:
		return false
	}
	return true
}

// breakStream breaks a stream after its first token. It returns false if the mode breaks no stream.
func breakStream(v *sse, f form, mode string) bool {
	switch mode {
	case FaultCut, FaultShort: // the length was announced with the header
		sever(v.w, byFIN)
	case FaultErrorEvent:
		f.fail(v, engineDead())
	case FaultGarbage:
		v.write(append(v.buf[:0], garbage...))
	case FaultBadFrame:
		sendRaw(v.w, "no size\r\n"+garbage, byFIN)
	case FaultHalfClose:
		sendRaw(v.w, "fff\r\ndata: {\"id\"", byHalfFIN)
	default:
		return false
	}
	return true
}

// writePlain answers 200 with a JSON body, broken in the way of mode.
func writePlain(w http.ResponseWriter, mode string, body []byte) {
	if !breakPlain(w, mode, body) {
		writeBody(w, http.StatusOK, body)
	}
}

// writeAtOnce answers with a JSON value where no engine is asked. A worker that drains has no answer.
func writeAtOnce(w http.ResponseWriter, r *http.Request, v any) {
	if drained(modeOf(r)) {
		writeError(w, engineDead())
		return
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic("BUG: vllmsim: " + err.Error())
	}
	writePlain(w, modeOf(r), raw)
}
