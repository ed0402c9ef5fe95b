package prompt

import (
	"bytes"
	"mime"
)

// Bounds on what a form may make us read: an audio request has some ten fields with two lines of header each.
const (
	maxFormParts  = 256
	maxPartHeader = 8 << 10
	maxFormValue  = 1 << 10
)

// Multipart finds the fields model and stream in a multipart/form-data body (audio, image edits), copying nothing but these. The
// body may be cut short: a field counts if its end is there. ok: it is such a form, as far as it was read; of a field that comes
// twice the last counts, as with vLLM. The bodies of files are searched for the boundary only.
func Multipart(contentType string, body []byte) (model string, stream, ok bool) {
	media, params, err := mime.ParseMediaType(contentType)
	boundary := params["boundary"]
	if err != nil || media != "multipart/form-data" || boundary == "" || len(boundary) > 70 {
		return "", false, false
	}
	end := append([]byte("\r\n--"), boundary...)
	rest, found := bytes.CutPrefix(body, end[2:])
	if !found { // a preamble, which clients do not send, or no form at all
		if _, rest, found = bytes.Cut(body, end); !found {
			return "", false, false
		}
	}
	for range maxFormParts {
		if rest, found = bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte("\r\n")); !found {
			return model, stream, true // the last boundary, or the body ends here
		}
		head, _, whole := bytes.Cut(rest[:min(len(rest), maxPartHeader)], []byte("\r\n\r\n"))
		if !whole {
			return model, stream, true
		}
		value, after, found := bytes.Cut(rest[len(head)+len("\r\n\r\n"):], end)
		if !found {
			return model, stream, true
		}
		rest = after
		if len(value) > maxFormValue {
			continue
		}
		switch fieldName(head) {
		case "model":
			model = string(value)
		case "stream":
			stream = truth(value)
		}
	}
	return model, stream, true
}

// fieldName is the name that a part's header gives it, "" for a file.
func fieldName(head []byte) string {
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
