package prompt

import "bytes"

// Edit is text in place of the bytes from Lo to Hi of a body.
type Edit struct {
	Lo, Hi int
	Text   []byte
}

// AskUsage returns what makes the body of a stream ask for the usage at its end. It returns false if the body does so,
// if the answer is no such stream, or if the worker is to find fault with the body. Call it after Parse, before Trim.
func (r *Request) AskUsage() (Edit, bool) {
	const ask = `"include_usage":true`
	f := &r.fields
	if r.Kind != Chat && !r.Kind.completes() || !r.Stream || r.IncludeUsage {
		return Edit{}, false
	}
	at, value := f.at[fieldStreamOptions], f.raw(fieldStreamOptions)
	switch {
	case f.has(fieldIncludeUsage):
		at, value = f.at[fieldIncludeUsage], f.raw(fieldIncludeUsage)
		return at.edit("true"), value[0] != '1' && value[0] != '"' // which Python reads as true, or may
	case len(value) == 0: // the field is not there
		at = f.at[fieldStream]
		at.lo = at.hi
		return at.edit(`,"stream_options":{` + ask + `}`), true
	case value[0] != '{':
		return at.edit("{" + ask + "}"), string(value) == "null"
	}
	more := ","
	if len(bytes.Trim(value, "{} \t\r\n")) == 0 {
		more = ""
	}
	at.lo++
	at.hi = at.lo
	return at.edit(ask + more), true
}

// edit returns text in place of a value.
func (v span) edit(text string) Edit { return Edit{Lo: int(v.lo), Hi: int(v.hi), Text: []byte(text)} }
