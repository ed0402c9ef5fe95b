package prompt

import (
	"bytes"
	"mime"
	"strings"
	"unicode/utf8"
)

// Limits for reading a form: an audio request has about ten fields with two header lines each.
const (
	maxFormParts  = 256
	maxPartHeader = 8 << 10
	maxFormValue  = 1 << 10
)

// Multipart finds the fields model and stream in a multipart/form-data body (audio, image edits), and copies only
// these. The body may be cut short: a field counts if its end is there. If a field comes twice, the last one counts. It
// searches the bodies of files for the boundary only.
//
// ok reports whether no reader finds another model. The form was then read to its closing boundary and holds nothing
// rare: no second model, no parameter or header that clients do not write, no bound that was hit. Readers differ on
// rare forms: for name="x"; name="model" Python's reader takes the last one and Go's takes none. An allowance for
// some models must not rest on a form that is not ok.
func Multipart(contentType string, body []byte) (model string, stream, ok bool) {
	f := formReader{}
	if !f.begin(contentType, body) {
		return "", false, false
	}
	for range maxFormParts {
		if !f.part() {
			return f.model, f.stream, f.closed && !f.odd
		}
	}
	return f.model, f.stream, false
}

// FormModel returns the positions of the values of the fields model in a multipart/form-data body.
func FormModel(contentType string, body []byte) [][2]int {
	f := formReader{}
	if !f.begin(contentType, body) {
		return nil
	}
	for n := 0; n < maxFormParts && f.part(); n++ {
	}
	for i := range f.models { // their starts were counted from the end
		f.models[i][0] += len(body)
		f.models[i][1] += len(body)
	}
	return f.models
}

// formReader is a multipart body on its way to be read.
type formReader struct {
	mark   []byte // the boundary with its two dashes
	rest   []byte // after the last boundary
	model  string
	stream bool
	named  bool // a part was named model
	odd    bool // readers may differ on something that was read
	closed bool // the closing boundary was read, and nothing is behind it

	models [][2]int // positions of the values of the fields model, from the end of the body

	reference string // the file or job that the form names, see FormReference
}

// begin reads up to the first boundary, and reports whether there is one.
func (f *formReader) begin(contentType string, body []byte) bool {
	media, params, err := mime.ParseMediaType(contentType)
	boundary := params["boundary"]
	if err != nil || media != "multipart/form-data" || boundary == "" || len(boundary) > 70 {
		return false
	}
	f.odd = !plainBoundary(contentType, boundary)
	f.mark = append([]byte("--"), boundary...)
	rest, found := bytes.CutPrefix(body, f.mark)
	if !found { // a preamble, which clients do not send, or no form at all
		f.odd = true
		f.rest = body
		_, rest, found = f.cut(body)
	}
	f.rest = rest
	return found
}

// cut splits text at the next boundary that begins a line. The boundary in another place is odd: some readers take
// bare LFs for the ends of lines.
func (f *formReader) cut(text []byte) (before, after []byte, found bool) {
	for from := 0; ; {
		i := bytes.Index(text[from:], f.mark)
		if i < 0 {
			return nil, nil, false
		}
		i += from
		if i >= 2 && text[i-2] == '\r' && text[i-1] == '\n' {
			return text[:i-2], text[i+len(f.mark):], true
		}
		f.odd = true
		from = i + 1
	}
}

// part reads one part, and reports whether another may follow.
func (f *formReader) part() bool {
	if tail, last := bytes.CutPrefix(f.rest, []byte("--")); last {
		f.closed = len(tail) == 0 || string(tail) == "\r\n"
		return false
	}
	rest, found := bytes.CutPrefix(f.rest, []byte("\r\n"))
	if !found {
		f.odd = true
		rest, found = bytes.CutPrefix(bytes.TrimLeft(f.rest, " \t"), []byte("\r\n"))
		if !found {
			return false
		}
	}
	head, _, whole := bytes.Cut(rest[:min(len(rest), maxPartHeader)], []byte("\r\n\r\n"))
	if !whole {
		return false
	}
	rest = rest[len(head)+len("\r\n\r\n"):]
	value, after, found := f.cut(rest)
	if !found {
		return false
	}
	f.rest = after
	h, plain := readPartHead(head)
	if !plain || h.length >= 0 && h.length != len(value) {
		f.odd = true
		h = partHead{name: looseName(head)}
	}
	f.keep(h, value)
	if h.name == "model" && !h.file {
		f.models = append(f.models, [2]int{-len(rest), len(value) - len(rest)})
	}
	return true
}

// keep records the values of the fields that count.
func (f *formReader) keep(h partHead, value []byte) {
	short := len(value) <= maxFormValue
	switch {
	case h.name == "model":
		f.odd = f.odd || f.named || h.file || h.coded || !short || !plainValue(value)
		f.named = true
		if short && !h.file {
			f.model = string(value)
		}
	case h.name == "stream" && short && !h.file:
		f.stream = truth(value)
	case isLike(h.name, "model"):
		f.odd = true
	case short && !h.file && f.reference == "":
		f.keepReference(h.name, value)
	}
}

// isLike reports whether a framework may take a field for the one of that name: MODEL, model[], model.name.
func isLike(name, wanted string) bool {
	return len(name) >= len(wanted) && strings.EqualFold(name[:len(wanted)], wanted) &&
		(len(name) == len(wanted) || name[len(wanted)] == '[' || name[len(wanted)] == '.')
}

// plainValue reports whether a value has nothing that a reader may trim or decode.
func plainValue(value []byte) bool {
	for _, c := range value {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(value) && len(bytes.TrimSpace(value)) == len(value)
}

// looseName returns the name that a part's header seems to give it, "" for a file.
func looseName(head []byte) string {
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte("\r\n"))
		head = rest
		name, value, _ := bytes.Cut(line, []byte(":"))
		if !bytes.EqualFold(bytes.TrimSpace(name), []byte("content-disposition")) {
			continue
		}
		_, params, err := mime.ParseMediaType(string(value))
		if _, file := params["filename"]; err != nil || file {
			return ""
		}
		return params["name"]
	}
	return ""
}

// truth reads a flag as vLLM's form parser (pydantic) does.
func truth(value []byte) bool {
	switch string(bytes.ToLower(value)) {
	case "true", "1", "t", "y", "yes", "on":
		return true
	}
	return false
}
