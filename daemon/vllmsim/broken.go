package vllmsim

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// garbage stands in a stream where an event should: bytes that are neither UTF-8 nor lines.
const garbage = "\xff\xfe\x00\x00{]}\x1b[2J\r\rdata:{\"choices\":[{\n\n:\x80\n\nevent data: \x00\n\n"

// sever drops the connection of a request; reset sends a RST instead of a FIN.
func sever(w http.ResponseWriter, reset bool) {
	c := hijack(w)
	if tcp, ok := c.(*net.TCPConn); ok && reset {
		tcp.SetLinger(0)
	}
	c.Close()
}

func hijack(w http.ResponseWriter) net.Conn {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // a recorder, or the connection is gone
	}
	return c
}

// hang reads a request and leaves it without an answer until its client goes away.
func hang(r *http.Request) {
	io.Copy(io.Discard, r.Body) // else nobody watches for the end of the connection
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// breakPlain answers with body, broken in the way of mode. False: the mode breaks no plain answer.
func breakPlain(w http.ResponseWriter, mode string, body []byte) bool {
	head := func(more string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n", len(body), more)
	}
	half := string(body[:len(body)/2])
	switch mode {
	case FaultErrorEvent:
		writeError(w, engineDead())
	case FaultGarbage:
		sendRaw(w, garbage, false)
	case FaultBadFrame:
		sendRaw(w, head(fmt.Sprintf("content-length: %d\r\n", len(body)+7))+string(body), false)
	case FaultShort:
		sendRaw(w, head("")+half, false)
	case FaultHalfClose:
		sendRaw(w, head("")+half, true)
	default:
		return false
	}
	return true
}

// breakStream breaks a stream after its first token. False: the mode breaks no stream.
func breakStream(v *events, mode string) bool {
	switch mode {
	case FaultCut, FaultShort: // the length was announced with the header
		sever(v.w, false)
	case FaultErrorEvent:
		v.j.form.fail(v, engineDead())
	case FaultGarbage:
		v.buf = append(v.buf[:0], garbage...)
		v.flush()
	case FaultBadFrame:
		sendRaw(v.w, "no size\r\n"+garbage, false)
	case FaultHalfClose:
		sendRaw(v.w, "fff\r\ndata: {\"id\"", true)
	default:
		return false
	}
	return true
}

// sendRaw writes to the connection itself and closes it, or with half its sending side alone until the client has gone.
func sendRaw(w http.ResponseWriter, text string, half bool) {
	c := hijack(w)
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(c, text); err != nil || !half {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		io.Copy(io.Discard, c)
	}
}

// engineDead is what vLLM says when its engine has crashed under a request.
func engineDead() *apiError {
	return newError(http.StatusInternalServerError, "InternalServerError", "",
		"EngineCore encountered an issue. See stack trace (above) for the root cause.")
}
