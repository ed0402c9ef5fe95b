package main

import (
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// form is a multipart body. Its first part names the model sim, as an honest one does; parts are what follows.
func form(parts ...string) string {
	return "--B\r\n" + strings.Join(append([]string{honestPart}, parts...), "\r\n--B\r\n") + "\r\n--B--\r\n"
}

const honestPart = "Content-Disposition: form-data; name=\"model\"\r\n\r\nsim"

// part is one with this disposition, which names the model secret to a lenient reader.
func part(disposition string) string { return "Content-Disposition: " + disposition + "\r\n\r\nsecret" }

// attackForms tries multipart bodies whose parts a worker may read otherwise than the router. Workers read with
// python-multipart, which lets the last name win and knows no broken parameters.
func attackForms(l *lab, d *rig.Proc, w *echo) {
	post := func(body string) []byte {
		return wire.Request("POST", "/v1/audio/transcriptions", body, "Content-Type: multipart/form-data; boundary=B", bob)
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = "Content-Disposition: x; name=\"f\"\r\n\r\ny"
	}
	for name, body := range inOrder(map[string]string{
		"form-two-names":          form(part(`form-data; name="x"; name="model"`)),
		"form-two-dispositions":   form("Content-Disposition: form-data; name=\"x\"\r\n" + part(`form-data; name="model"`)),
		"form-empty-parameter":    form(part(`form-data; name="model"; =`)),
		"form-blank-in-parameter": form(part(`form-data; name="model"; a b=c`)),
		"form-blank-in-type":      form(part(`form data; name="model"`)),
		"form-long-part-header": form(strings.Repeat("X-A: "+strings.Repeat("b", 3000)+"\r\n", 4) +
			part(`form-data; name="model"`)),
		"form-many-parts":          form(append(many, part(`form-data; name="model"`))...),
		"form-long-value":          form(part(`form-data; name="model"`) + strings.Repeat(" ", 2000)),
		"form-two-models":          form(part(`form-data; name="model"`)),
		"form-star-name":           form(part(`form-data; name*=utf-8''model`)),
		"form-unquoted-name":       form(part(`form-data; name=model`)),
		"form-upper-case":          form("CONTENT-DISPOSITION: form-data; NAME=\"model\"\r\n\r\nsecret"),
		"form-no-end":              strings.TrimSuffix(form(part(`form-data; name="model"`)), "\r\n--B--\r\n"),
		"form-blank-in-boundary":   strings.Replace(form(part(`form-data; name="model"`)), "\r\n--B\r\n", "\r\n--B \r\n", 1),
		"form-bare-lf":             strings.ReplaceAll(form(part(`form-data; name="model"`)), "\r\n", "\n"),
		"form-field-with-blank":    form("Content-Disposition : form-data; name=\"model\"\r\n\r\nsecret"),
		"form-folded-field":        form("Content-Disposition: form-data;\r\n name=\"model\"\r\n\r\nsecret"),
		"form-escaped-quote":       form(part(`form-data; name="x\"; name="model"; y="`)),
		"form-file-named-as-model": form(part(`form-data; name="model"; filename="a"`)),
	}) {
		l.way(name, func() (bool, string) { return closed(d.Addr, w, post(body)) })
	}
	l.way("form-control", func() (bool, string) {
		w.asked()
		a := wire.Once(d.Addr, post(form("Content-Disposition: form-data; name=\"file\"; "+
			"filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF")))
		n := len(w.asked())
		return a.Status == 200 && n == 1, fmt.Sprintf("an honest form is served: %d, %d came to a worker", a.Status, n)
	})
}
