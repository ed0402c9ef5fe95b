package vllmsim

import (
	"encoding/binary"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// mediaAPI serves audio and images, at once.
type mediaAPI struct {
	checker
	load *atomic.Int64 // open requests
}

func (a mediaAPI) routes(m router) {
	const usage = `,"usage":{"type":"duration","seconds":1}`
	m.on("/v1/audio/transcriptions", "POST", a.transcribe("transcription.chunk", usage))
	m.on("/v1/audio/translations", "POST", a.transcribe("translation.chunk", ""))
	m.on("/v1/audio/speech", "POST", a.speak)
	m.on("/v1/images/generations", "POST", a.paint)
}

// audioTokenBytes is how many bytes of audio make one token of text.
const audioTokenBytes = 4096

// audioForm is a multipart body whose file has been counted and thrown away.
type audioForm struct {
	fields map[string]string
	file   int64 // bytes, -1 for none
}

// readAudio reads a body of an audio endpoint.
func readAudio(r *http.Request) (audioForm, error) {
	f := audioForm{fields: make(map[string]string), file: -1}
	parts, err := r.MultipartReader()
	if err != nil {
		return f, err
	}
	for {
		p, err := parts.NextPart()
		if err == io.EOF {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		if err := f.read(p); err != nil {
			return f, err
		}
	}
}

func (f *audioForm) read(p *multipart.Part) error {
	defer p.Close()
	if p.FormName() == "file" {
		n, err := io.Copy(io.Discard, p)
		f.file = n
		return err
	}
	value, err := io.ReadAll(io.LimitReader(p, 1<<16))
	f.fields[p.FormName()] = string(value)
	return err
}

// transcribe answers transcriptions and translations: a token for every audioTokenBytes of the file, a stream if
// stream is true.
func (a mediaAPI) transcribe(object, usage string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f, err := readAudio(r)
		refused := a.checkModel(f.fields["model"])
		switch {
		case err != nil:
			refused = badRequest("", "There was an error parsing the body: "+err.Error())
		case f.file < 0:
			refused = invalid("missing", "body.file", "Field required", "None")
		case drained(modeOf(r)):
			refused = engineDead()
		}
		if refused != nil {
			writeError(w, refused)
			return
		}
		a.load.Add(1)
		defer a.load.Add(-1)
		n := int(min(1+f.file/audioTokenBytes, 4096))
		words := engine.NewReply(engine.Mix(uint64(f.file), a.cfg.Seed))
		if f.fields["stream"] == "true" || f.fields["stream"] == "True" {
			a.streamText(w, object, words, n)
			return
		}
		body := append(words.AppendJSON([]byte(`{"text":"`), 0, n), `"`+usage+`}`...)
		writePlain(w, modeOf(r), body)
	}
}

// streamText answers with an event for each token.
func (a mediaAPI) streamText(w http.ResponseWriter, object string, words engine.Reply, n int) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	head := fmt.Sprintf(`data: {"id":"trsc-%s","object":%q,"created":%d,"model":%s,"choices":[{"delta":{"content":"`,
		newID(), object, time.Now().Unix(), appendQuoted(nil, a.cfg.Models[0]))
	for i := range n {
		b := append(words.AppendJSON([]byte(head), i, i+1), `"},"finish_reason":`...)
		if i == n-1 {
			b = append(b, `"stop","stop_reason":null}]}`...)
		} else {
			b = append(b, `null,"stop_reason":null}]}`...)
		}
		if _, err := w.Write(append(b, "\n\n"...)); err != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// speak answers with a WAV of silence, 0.05 s for each token of the text, in chunks.
func (a mediaAPI) speak(w http.ResponseWriter, r *http.Request) {
	var b struct{ Model, Input string }
	if !a.parsePlain(w, r, &b, &b.Model, writeError) {
		return
	}
	if b.Input == "" {
		writeError(w, missing("body.input"))
		return
	}
	if drained(modeOf(r)) {
		writeError(w, engineDead())
		return
	}
	const rate = 24000 // 16 bits, mono
	pieces := min(engine.CountTokens(b.Input), 4096)
	data := uint32(pieces * rate / 20 * 2)
	wav := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, 36+data)...)
	wav = append(wav, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	wav = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(wav, rate), rate*2)
	wav = binary.LittleEndian.AppendUint32(append(wav, "\x02\x00\x10\x00data"...), data)
	w.Header().Set("Content-Type", "audio/wav")
	piece := make([]byte, rate/20*2)
	w.Write(wav)
	for range pieces {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// onePixel is a PNG of one pixel, in base64.
const onePixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="

// paint answers with images of one pixel.
func (a mediaAPI) paint(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Model, Prompt string
		N             int
	}
	if !a.parsePlain(w, r, &b, &b.Model, writeError) {
		return
	}
	if b.Prompt == "" || b.N < 0 || b.N > 10 {
		writeError(w, badRequest("prompt", "a prompt and n from 1 to 10 are needed"))
		return
	}
	data := []any{}
	for range max(b.N, 1) {
		data = append(data, map[string]any{"b64_json": onePixel, "url": nil, "revised_prompt": nil})
	}
	writeAtOnce(w, r, map[string]any{"created": time.Now().Unix(), "data": data})
}
