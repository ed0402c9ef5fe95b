package prompt

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/pyvenv"
)

// python is a process that reads requests as vLLM's stack does.
type python struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

// question and reading are lines of testdata/forms/reader.py.
type question struct {
	Type string `json:"type"`
	Body []byte `json:"body"`
	Cuts []int  `json:"cuts,omitempty"`
}

type reading struct {
	Model *string `json:"model"`
	Error string  `json:"error"`
}

// startPython installs what testdata/forms asks for under .cache/forms, where it stays, and starts the reader. Where
// that cannot be done the test is skipped, and with CI=1 it fails.
func startPython(t *testing.T) *python {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	forms := filepath.Join(root, "testdata", "forms")
	command := pyvenv.Python(t, filepath.Join(root, ".cache", "forms"), filepath.Join(forms, "requirements.txt"),
		"nothing was compared with Python")
	cmd := exec.CommandContext(t.Context(), command, filepath.Join(forms, "reader.py"))
	cmd.Stderr = os.Stderr
	p := &python{t: t}
	if p.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<20)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.in.Close()
		_ = cmd.Wait()
	})
	return p
}

// ask returns what Python reads of each request.
func (p *python) ask(all []question) []reading {
	p.t.Helper()
	sent := make(chan error, 1)
	go func() {
		w := json.NewEncoder(p.in)
		for _, q := range all {
			if err := w.Encode(q); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	var answers []reading
	for range all {
		var r reading
		if !p.out.Scan() || json.Unmarshal(p.out.Bytes(), &r) != nil {
			p.t.Fatalf("the reader ended after %d answers: %v", len(answers), p.out.Err())
		}
		answers = append(answers, r)
	}
	if err := <-sent; err != nil {
		p.t.Fatal(err)
	}
	return answers
}

// rounds is how many requests are compared in a run of the tests; WARMPATH_FORMS asks for more.
func rounds(t *testing.T) int {
	n := 3000
	if s := os.Getenv("WARMPATH_FORMS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestFormsAgainstPython: of a form that is ok vLLM's reader finds the same model, or refuses it; and so does Go's.
func TestFormsAgainstPython(t *testing.T) {
	p := startPython(t)
	const seed = 9
	n := rounds(t)
	all := make([]question, 0, n)
	for i := range n {
		g := formMaker{rand.New(rand.NewPCG(seed, uint64(i))), 1 + i%5*2}
		all = append(all, g.form())
	}
	answers := p.ask(all)
	plain, served, differ := 0, 0, 0
	for i, q := range all {
		model, _, ok := Multipart(q.Type, q.Body)
		read := answers[i]
		if read.Error == "" {
			served++
		}
		same := read.Error != "" || read.model() == model
		if !same {
			differ++
		}
		if !ok {
			continue
		}
		plain++
		if !same {
			t.Errorf("case %d is ok with %q, Python reads %q\n%q\n%q", i, model, read.model(), q.Type, q.Body)
		}
		if other, err := goModel(q); err == nil && other != model {
			t.Errorf("case %d is ok with %q, Go reads %q\n%q\n%q", i, model, other, q.Type, q.Body)
		}
	}
	t.Logf("%d forms: Python reads %d, with another model than we found in %d; %d are ok", n, served, differ, plain)
	if plain < n/20 || differ < n/100 {
		t.Error("the forms are no test: hardly one is ok, or hardly one is read in two ways")
	}
}

// TestJSONAgainstPython: the model of a body that was read to its end, and names one once, is Python's.
func TestJSONAgainstPython(t *testing.T) {
	p := startPython(t)
	const seed = 10
	n := rounds(t)
	all := make([]question, 0, n)
	for i := range n {
		g := formMaker{rand.New(rand.NewPCG(seed, uint64(i))), 1 + i%5*2}
		all = append(all, question{Type: "application/json", Body: g.json()})
	}
	plain, served := 0, 0
	var parser Parser
	for i, read := range p.ask(all) {
		r, err := parser.Parse(Chat, all[i].Body)
		if read.Error == "" {
			served++
		}
		if err != nil {
			continue
		}
		plain++
		if read.Error == "" && read.model() != r.Model {
			t.Errorf("case %d is ok with %q, Python reads %q\n%q", i, r.Model, read.model(), all[i].Body)
		}
		var other struct{ Model string }
		if json.Unmarshal(all[i].Body, &other) == nil && other.Model != r.Model && !r.AmbiguousModel {
			t.Errorf("case %d is sure of %q, Go reads %q\n%q", i, r.Model, other.Model, all[i].Body)
		}
	}
	t.Logf("%d bodies: Python reads %d, we %d", n, served, plain)
	if plain < n/20 || served < n/20 {
		t.Error("the bodies are no test: hardly one can be read")
	}
}

// json writes an object that names models.
func (g formMaker) json() []byte {
	var b strings.Builder
	b.WriteString(g.seldom(30, "", "\ufeff", " ", "\x00", "//\n"))
	b.WriteString("{")
	for i := range 1 + g.IntN(4) {
		if i > 0 {
			b.WriteString(g.seldom(30, ",", ",,", "", ";", ", \n"))
		}
		b.WriteString(g.seldom(3, `"model"`, `"mod\u0065l"`, `"MODEL"`, `"x"`, `"mo\del"`, `'model'`, "model", `"model "`, `"\u006d\u006F\u0064\u0065\u006C"`, "\"model\x00\"") + g.seldom(30, ":", "=", " : ", "::"))
		b.WriteString(g.seldom(3, `"sim"`, `"secret"`, `"s\u0065cret"`, "null", "1", `["secret"]`, `{"model":"secret"}`, "NaN", "-Infinity", `"\ud800"`, `"\ud83d\ude00"`,
			`"\/secret"`, `"sec`, "\"a\nb\"", strings.Repeat("[", 900)+strings.Repeat("]", 900), "1e999", "01", "tru", "\"\xff\"", `"\u00e9\b"`, `"\ud83d\u0041"`, "\"\u2028\""))
	}
	b.WriteString(g.seldom(12, "}", "", "}}", "} x", `}{"model":"secret"}`, "}\x00", "}\n"))
	q := question{Body: []byte(b.String())}
	for range g.IntN(8) / 7 {
		g.damage(&q)
	}
	return q.Body
}

// model is what the worker would look for, "" for none.
func (r reading) model() string {
	if r.Model == nil {
		return ""
	}
	return *r.Model
}

// goModel is the model that Go's own reader finds.
func goModel(q question) (model string, err error) {
	_, boundary, _ := strings.Cut(q.Type, "boundary=")
	r := multipart.NewReader(bytes.NewReader(q.Body), strings.Trim(boundary, `"`))
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return model, nil
		}
		if err != nil {
			return "", err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return "", err
		}
		if part.FormName() == "model" {
			model = string(value)
		}
	}
}

// formMaker writes forms as clients do, and as nobody should.
type formMaker struct {
	*rand.Rand
	calm int // how much less than usual is strange
}

func (g formMaker) of(list ...string) string { return list[g.IntN(len(list))] }

// seldom is one of the list in one of n cases, else usual.
func (g formMaker) seldom(n int, usual string, list ...string) string {
	if g.IntN(n*g.calm) > 0 {
		return usual
	}
	return g.of(list...)
}

func (g formMaker) form() question {
	q := question{Type: g.seldom(12, formOf, `multipart/form-data; boundary="b1"`, "multipart/form-data;boundary=b1", "Multipart/Form-Data; boundary=b1",
		"multipart/form-data; boundary=b1; charset=utf-16", "multipart/form-data; boundary=b2; boundary=b1", "multipart/form-data; boundary=b1; boundary=b2",
		"multipart/form-data; charset=latin-1; boundary=b1", "multipart/form-data; Boundary=b1", `multipart/form-data; boundary="b\1"`,
		"multipart/form-data; boundary*=utf-8''b1; boundary=b2")}
	var b strings.Builder
	b.WriteString(g.seldom(20, "", "\r\n", "preamble\r\n", "\r\nx --b1\r\n", "\n", "--b2\r\n"))
	n := g.IntN(4) + 1
	if g.IntN(60) == 0 {
		n = 250 + g.IntN(60)
	}
	for range n {
		b.WriteString("--b1" + g.seldom(40, "\r\n", "\n", " \r\n", "\t\r\n", "-\r\n", "\r\r\n"))
		for range g.IntN(2+g.calm) / (1 + g.calm) {
			b.WriteString(g.line() + g.seldom(40, "\r\n", "\n", "\r", "\r\n\r\n"))
		}
		b.WriteString(g.seldom(30, "Content-Disposition: ", "content-disposition:", "Content-Disposition : ", "Content-Disposition:\t", "Content_Disposition: "))
		b.WriteString(g.seldom(12, "form-data", "form data", "x", "FORM-DATA", "", "attachment") + g.params())
		for range g.IntN(2+g.calm) / (1 + g.calm) {
			b.WriteString(g.seldom(40, "\r\n", "\n", "\r", "\r\n ") + g.line())
		}
		b.WriteString(g.seldom(40, "\r\n\r\n", "\n\n", "\r\n", "\r\n\n") + g.value() + g.seldom(40, "\r\n", "\n", "", "\r"))
	}
	b.WriteString(g.seldom(12, "--b1--\r\n", "--b1--", "--b1", "", "--b1-", "--b1--\r\n--b1\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsecret\r\n--b1--\r\n"))
	q.Body = []byte(b.String())
	for range g.IntN(8) / 7 * (1 + g.IntN(2)) {
		g.damage(&q)
	}
	for range g.IntN(4) {
		q.Cuts = append(q.Cuts, 1+g.IntN(len(q.Body)+1))
	}
	return q
}

// params are the parameters of a disposition.
func (g formMaker) params() string {
	name := g.of("model", "model", "model", "x", "stream", "file")
	s := g.seldom(5, `; name="`+name+`"`, "; name="+name, "; NAME="+name, ";name="+name, "; name ="+name, "; name= "+name, "; name*=utf-8''"+name,
		"; name*0=mo; name*1=del", `; name="mo\del"`, `; name="`+name, `; name='`+name+`'`, `; name=""`, "", `; name="x"; name="`+name+`"`, `; name="model "`,
		`; name="MODEL"`, `; name="model[]"`, `; name=mo"del"`)
	return s + g.seldom(4, "", `; filename="a.wav"`, `; filename="a\"; name="model"`, "; =", "; a b=c", ";", "; filename*=utf-8''a", `; filename="C:\"; name="model`,
		`; filename="a;b"; name=model`, `; x="`, ` name="model"`, `; filename="\\"; name="model"`, "; filename=", `; filename="a\b.wav"`, `; filename="\a\\b"; name="model"`)
}

// line is another line of a part's header.
func (g formMaker) line() string {
	return g.of("Content-Type: text/plain", "Content-Type: text/plain; charset=utf-16", "Content-Transfer-Encoding: base64", "Content-Transfer-Encoding: quoted-printable",
		"Content-Type: multipart/mixed; boundary=b2", "Content-Length: 3", "Content-Disposition: form-data; name=\"model\"", "X: y", ": y", "X", " folded",
		"X: "+strings.Repeat("x", 4000), "X: "+strings.Repeat("x", 9000), `CONTENT-DISPOSITION: form-data; name="x"`)
}

func (g formMaker) value() string {
	return g.seldom(3, g.of("sim", "secret"), " secret", "secret\r\n", "secret"+strings.Repeat(" ", 2000), "", "se\x00cret", "s\xe9cret", "caf\u00e9", "\ufeffsecret",
		"secret\r\n--b", "x\n--b1\nContent-Disposition: form-data; name=\"model\"\n\nsecret", "c2VjcmV0", "=73ecret", "\u00a0secret", "--b1", "\r\n--b1x")
}

// damage changes a byte or two.
func (g formMaker) damage(q *question) {
	if len(q.Body) == 0 {
		return
	}
	i := g.IntN(len(q.Body))
	strange := []byte("\r\n\t \";=:\\-*'\x00\xff%b1")
	c := strange[g.IntN(len(strange))]
	switch g.IntN(3) {
	case 0:
		q.Body[i] = c
	case 1:
		q.Body = append(q.Body[:i:i], append([]byte{c}, q.Body[i:]...)...)
	default:
		q.Body = append(q.Body[:i:i], q.Body[i+1:]...)
	}
}
