package upstream

import (
	"bytes"
	"fmt"
	"strings"
)

// maxFields bounds the header fields of an answer: vLLM sends 4, and the whole head is bounded too (maxHead).
const maxFields = 256

// maxHead bounds the head of an answer, interim answers before it included.
const maxHead = 64 << 10

// headReader finds the heads at the start of an answer: interim ones (RFC 9110, section 15.2), then the final one.
type headReader struct {
	buf  []byte
	n    int // bytes read into buf
	from int // where the next head begins
	line int // where the line begins up to which buf was looked at
}

// next returns the next head with its empty line, or "" if it is not whole yet.
func (h *headReader) next() (string, error) {
	end, line, err := headEnd(h.buf[:h.n], h.line)
	h.line = line
	switch {
	case err != nil:
		return "", err
	case end > 0:
		s := string(h.buf[h.from:end])
		h.from = end
		return s, nil
	case h.n >= len("HTTP/1.") && string(h.buf[:7]) != "HTTP/1.":
		return "", fmt.Errorf("%w: it does not begin with HTTP/1", errAnswer)
	case h.n >= maxHead:
		return "", fmt.Errorf("%w: its head is over %d bytes", errAnswer, maxHead)
	}
	return "", nil
}

// full reports whether there is no room to read more.
func (h *headReader) full() bool { return h.n == len(h.buf) }

// grow makes room for the longest head, in memory of its own.
func (h *headReader) grow() { h.buf = append(make([]byte, 0, maxHead), h.buf...)[:maxHead] }

// rest returns what has come behind the last head.
func (h *headReader) rest() []byte { return h.buf[h.from:h.n] }

// head is the start of an answer.
type head struct {
	status  int
	header  Header
	length  int64 // Content-Length; -1 = none
	chunked bool
	keep    bool // the worker will take another request on this connection
	upgrade bool // a WebSocket was asked for
}

// headEnd looks for the empty line in b. line is where the line begins up to which b was looked at before. It returns
// the end of the head, 0 if there is more to come, and the new line. A line feed without a carriage return is a fault:
// a reader that takes both for a line's end sees another head than one that does not.
func headEnd(b []byte, line int) (end, next int, err error) {
	for {
		i := bytes.IndexByte(b[line:], '\n')
		if i < 0 {
			return 0, line, nil
		}
		if i == 0 || b[line+i-1] != '\r' {
			return 0, line, fmt.Errorf("%w: a line of its head ends without CR", errAnswer)
		}
		line += i + 1
		if i == 1 {
			return line, line, nil
		}
	}
}

// parse reads a whole head, the empty line included. The header's strings share s. Fields are appended to h.header.
func (h *head) parse(s string) error {
	line, rest, _ := strings.Cut(s, "\r\n")
	if err := h.statusLine(line); err != nil {
		return err
	}
	h.length = -1
	http10 := line[7] == '0'
	closing := false
	for rest != "" {
		line, rest, _ = strings.Cut(rest, "\r\n")
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || name == "" || !plain(&inToken, name) || !printable(value) {
			return fmt.Errorf("%w: a header field has no name, or characters that it may not have", errAnswer)
		}
		if len(h.header) == maxFields {
			return fmt.Errorf("%w: more than %d header fields", errAnswer, maxFields)
		}
		h.header = append(h.header, Field{name, value})
		if err := h.meaning(name, value, &closing); err != nil {
			return err
		}
	}
	if h.chunked && (h.length >= 0 || http10) {
		return fmt.Errorf("%w: Transfer-Encoding beside Content-Length or in HTTP/1.0", errAnswer)
	}
	h.keep = !http10 && !closing
	return nil
}

// statusLine takes HTTP/1.0 and 1.1, with or without a reason.
func (h *head) statusLine(line string) error {
	if len(line) < len("HTTP/1.1 200") || line[:7] != "HTTP/1." || (line[7] != '0' && line[7] != '1') || line[8] != ' ' ||
		(len(line) > 12 && line[12] != ' ') || !plain(&inValue, line) {
		return fmt.Errorf("%w: its status line", errAnswer)
	}
	h.status = 0
	for i := 9; i < 12; i++ {
		if line[i] < '0' || line[i] > '9' {
			return fmt.Errorf("%w: its status", errAnswer)
		}
		h.status = h.status*10 + int(line[i]-'0')
	}
	if h.status < 100 || h.status == 101 && !h.upgrade { // nothing was asked to be switched to
		return fmt.Errorf("%w: status %d", errAnswer, h.status)
	}
	return nil
}

// meaning reads the fields that determine where the answer ends.
func (h *head) meaning(name, value string, closing *bool) error {
	switch len(name) {
	case len("Content-Length"):
		if !strings.EqualFold(name, "Content-Length") {
			return nil
		}
		n, ok := decimal(value)
		if !ok || (h.length >= 0 && h.length != n) {
			return fmt.Errorf("%w: Content-Length is no number, or two that differ", errAnswer)
		}
		h.length = n
	case len("Transfer-Encoding"):
		if !strings.EqualFold(name, "Transfer-Encoding") {
			return nil
		}
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return fmt.Errorf("%w: a Transfer-Encoding other than one chunked", errAnswer)
		}
		h.chunked = true
	case len("Connection"):
		if !strings.EqualFold(name, "Connection") {
			return nil
		}
		*closing = *closing || NamesClose(value)
	}
	return nil
}

// NamesClose reports whether close is one of the options in the value of a Connection field, in letters of either size
// (RFC 9110, section 7.6.1).
func NamesClose(value string) bool {
	for option := range strings.SplitSeq(value, ",") {
		if strings.EqualFold(strings.Trim(option, " \t"), "close") {
			return true
		}
	}
	return false
}

// decimal reads digits alone, at most 18 of them, so that no sum of lengths overflows.
func decimal(s string) (n int64, ok bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}
