package front

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// answerHead is the head of an answer that fasthttp does not write.
type answerHead struct {
	status   int
	fields   [2][]upstream.Field
	length   int64 // of the body, or unknown
	unframed bool  // a body of unknown length is not chunked, and the close is its end
	last     bool  // on the connection
	at       time.Time
}

// unknown is the length of a body that is chunked, or unframed.
const unknown = -1

// appendTo appends status line and fields.
func (h *answerHead) appendTo(b []byte) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(h.status), 10)
	b = append(b, ' ')
	b = append(b, fasthttp.StatusMessage(h.status)...)
	b = append(b, "\r\nDate: "...)
	b = appendDate(b, h.at)
	b = append(b, "\r\n"...)
	for _, fields := range h.fields {
		for _, f := range fields {
			b = append(append(append(append(b, f.Name...), ": "...), f.Value...), "\r\n"...)
		}
	}
	switch {
	case h.status == fasthttp.StatusSwitchingProtocols:
		return append(b, "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"...)
	case h.length >= 0:
		b = append(b, "Content-Length: "...)
		b = append(strconv.AppendInt(b, h.length, 10), "\r\n"...)
	case !h.unframed:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if h.last {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// date is a second in the form of the field.
type date struct {
	second int64
	text   []byte
}

// lastDate is the one that was written last.
var lastDate atomic.Pointer[date]

// appendDate appends the time in the form of the field Date.
func appendDate(b []byte, at time.Time) []byte {
	d := lastDate.Load()
	if second := at.Unix(); d == nil || d.second != second {
		d = &date{second: second, text: fasthttp.AppendHTTPDate(nil, at)}
		lastDate.Store(d)
	}
	return append(b, d.text...)
}
