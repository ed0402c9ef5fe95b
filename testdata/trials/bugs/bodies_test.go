package bugs

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// What clients send: pictures in front of the model's name, a form with its file first, a compressed body. Two workers
// serve different models.
var bodies = []wallCase{
	{"12-mb-of-pictures-before-the-model-find-it", big(func() (string, string) {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"what is it?"}` + strings.Repeat(photo(), 3) +
			`]}],"model":"b"}`, "application/json"
	}, chatPath)},
	{"12-mb-of-pictures-after-the-model-find-it", big(func() (string, string) {
		return `{"model":"b","messages":[{"role":"user","content":[{"type":"text","text":"what is it?"}` +
			strings.Repeat(photo(), 3) + `]}]}`, "application/json"
	}, chatPath)},
	{"9-mb-of-audio-before-the-model-find-it", big(func() (string, string) { return filePart() + modelPart + "--B--\r\n", forms },
		"/v1/audio/transcriptions")},
	{"9-mb-of-audio-after-the-model-find-it", big(func() (string, string) { return modelPart + filePart() + "--B--\r\n", forms },
		"/v1/audio/transcriptions")},
	{"9-mb-of-input-before-the-model-find-it", big(func() (string, string) {
		return `{"input":[{"role":"user","content":[{"type":"input_text","text":"{\"model\":\"a\"}"}` + strings.Repeat(photo(), 3) +
			`]}],"stream":false,"model":"b"}`, "application/json"
	}, "/v1/responses")},
	{"a-gzip-body-finds-its-model-or-gets-415", compressed("gzip", func(to io.Writer) io.WriteCloser { return gzip.NewWriter(to) })},
	{"a-zlib-body-finds-its-model-or-gets-415", compressed("deflate", func(to io.Writer) io.WriteCloser { return zlib.NewWriter(to) })},
	{"a-zstd-body-finds-its-model-or-gets-415", compressed("zstd", func(to io.Writer) io.WriteCloser { return &stored{to: to} })},
}

const forms = "multipart/form-data; boundary=B"

// photo is a picture of 4 MB in a chat.
func photo() string {
	return `,{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,` + strings.Repeat("A", 4<<20) + `"}}`
}

const modelPart = "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nb\r\n"

func filePart() string {
	return "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\nContent-Type: audio/mpeg\r\n\r\n" +
		strings.Repeat("\xff", 9<<20) + "\r\n"
}

// models starts a worker for each model. It tells the model that it serves.
func (l *lab) models(names ...string) (all []*engine.Engine) {
	for _, name := range names {
		all = append(all, l.engine(&engine.Engine{
			Listed: func() []engine.Model { return []engine.Model{{ID: name}} },
			Post:   func(c *wire.Call) bool { return c.Plain(200, "application/json", engine.Chat("served "+name, "stop")) },
		}))
	}
	return all
}

func big(made func() (body, kind string), path string) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r := l.router(l.models("a", "b")...)
		body, kind := made()
		a := wire.Once(r.Addr, wire.Request("POST", path, body, "Content-Type: "+kind))
		return fmt.Sprintf("answered %d", a.Status), served(a) && strings.Contains(string(a.Body), "served b")
	}
}

func compressed(coding string, writer func(io.Writer) io.WriteCloser) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r := l.router(l.models("a", "b")...)
		right, told := 0, 0
		order := "aabbba"
		for _, m := range order {
			var b bytes.Buffer
			w := writer(&b)
			_, _ = io.WriteString(w, fmt.Sprintf(`{"model":"%c","messages":[{"role":"user","content":"hi"}]}`, m))
			_ = w.Close()
			a := r.post(chatPath, b.String(), "Content-Encoding: "+coding)
			if served(a) && strings.Contains(string(a.Body), fmt.Sprintf("served %c", m)) {
				right++
			}
			if a.Status == 415 {
				told++
			}
		}
		return fmt.Sprintf("%d of 6 at the model's worker, %d told 415", right, told), right == len(order) || told == len(order)
	}
}

// stored writes a zstd frame of one block that is not compressed: RFC 8878.
type stored struct {
	to   io.Writer
	text []byte
}

func (s *stored) Write(b []byte) (int, error) {
	s.text = append(s.text, b...)
	return len(b), nil
}

func (s *stored) Close() error {
	n := len(s.text) // below 256: one byte tells it
	block := n<<3 | 1
	head := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, byte(n), byte(block), byte(block >> 8), byte(block >> 16)}
	_, err := s.to.Write(append(head, s.text...))
	return err
}
