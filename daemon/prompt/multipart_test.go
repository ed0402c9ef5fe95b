package prompt

import (
	"bytes"
	"mime/multipart"
	"strings"
	"testing"
)

func TestMultipart(t *testing.T) {
	f := func(contentType, body, model string, stream, ok bool) {
		t.Helper()
		if m, s, o := Multipart(contentType, []byte(strings.ReplaceAll(body, "\n", "\r\n"))); m != model || s != stream || o != ok {
			t.Errorf("%s\n%s\ngot  %q %v %v\nwant %q %v %v", contentType, body, m, s, o, model, stream, ok)
		}
	}
	form := `multipart/form-data; boundary="b b"`
	field := func(name, value string) string {
		return "--b b\nContent-Disposition: form-data; name=\"" + name + "\"\n\n" + value + "\n"
	}
	file := "--b b\nContent-Disposition: form-data; name=\"model\"; filename=\"model\"\nContent-Type: audio/wav\n\nRIFF\n--b \n\n--bb\n"
	f(form, field("model", "whisper")+field("stream", "true")+"--b b--\n", "whisper", true, true)
	f(form, file+field("stream", "False")+field("model", "naïve/é")+"--b b--\n", "naïve/é", false, true)
	f(form, field("model", "a")+field("model", "b")+"--b b--", "b", false, true)
	f(form, field("model", "two\nlines")+"--b b--", "two\r\nlines", false, true)
	f(form, field("stream", "1")+field("model", strings.Repeat("x", maxFormValue+1))+"--b b--", "", true, true)
	f(form, "hello\n"+field("model", "a")+"--b b--", "a", false, true)
	f(form, "--b b\ncontent-disposition:form-data;name=model\n\na\n--b b  \n\n\n--b b--", "a", false, true)
	f(form, "--b b\n\nmodel\n--b b--", "", false, true)
	f(form, "--b b--", "", false, true)
	f(form, "", "", false, false)
	f(form, "{}", "", false, false)
	f("multipart/form-data", field("model", "a"), "", false, false)
	f("multipart/mixed; boundary=\"b b\"", field("model", "a"), "", false, false)
	f("application/json", "{}", "", false, false)
	f("", "", "", false, false)
	f(form, field("stream", "on")+field("model", "a"), "", true, true) // the value may go on
	f(form, field("model", "a")+strings.Repeat(field("x", "y"), maxFormParts)+field("model", "b")+"--b b--", "a", false, true)
	f(form, "--b b\n"+strings.Repeat("X-Long: xxxxxxxxx\n", 1000)+"\na\n--b b--", "", false, true)
}

// FuzzMultipart: of a form written by the standard library the fields are found, whatever the files hold, and of its beginning
// the same or nothing.
func FuzzMultipart(f *testing.F) {
	f.Add("whisper-1", "true", []byte("RIFF\r\n--x\r\n\r\nWAVE"), uint(60))
	f.Add("a\"b\\c", "", []byte("\r\n--"), uint(0))
	f.Add("", "on", []byte{}, uint(1000))
	f.Fuzz(func(t *testing.T, model, stream string, file []byte, cut uint) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		part, _ := w.CreateFormFile("file", "a.wav")
		part.Write(file)
		w.WriteField("model", model)
		w.WriteField("stream", stream)
		w.Close()
		m, s, ok := Multipart(w.FormDataContentType(), b.Bytes())
		if !ok || m != model && len(model) <= maxFormValue || s != truth([]byte(stream)) && len(stream) <= maxFormValue {
			t.Fatalf("%q %v %v, want %q %q", m, s, ok, model, stream)
		}
		if m, _, _ := Multipart(w.FormDataContentType(), b.Bytes()[:int(cut)%b.Len()]); m != "" && m != model {
			t.Fatalf("of a part of it: %q, want %q", m, model)
		}
		Multipart("multipart/form-data; boundary=x", file)
	})
}
