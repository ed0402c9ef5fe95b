package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// The callers of a daemon with keys: bob and eve may use the model sim only, root all.
const (
	bob  = "Authorization: Bearer key-of-bob"
	eve  = "Authorization: Bearer key-of-eve"
	root = "Authorization: Bearer key-of-root"
)

// keyed are the tables of their keys.
func (l *lab) keyed() (string, error) {
	var b strings.Builder
	for name, models := range map[string]string{"bob": `["sim"]`, "eve": `["sim"]`, "root": `["*"]`} {
		path := filepath.Join(l.dir, name+".key")
		if err := os.WriteFile(path, []byte("key-of-"+name+"\n"), 0o600); err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "[[keys]]\nname = %q\nfile = %q\nmodels = %s\n", name, path, models)
	}
	return b.String(), nil
}

// attackKeys tries to have a worker serve the model secret, or another caller's text, to bob.
func attackKeys(l *lab) error {
	w, err := l.echoes("sim", "secret")
	if err != nil {
		return err
	}
	tables, err := l.keyed()
	if err != nil {
		return err
	}
	d, err := l.serve(rig.Router{Strategies: tables, Workers: []string{w.addr}})
	if err != nil {
		return err
	}
	attackForms(l, d, w)
	attackPaths(l, d, w)
	l.way("json-tricks", func() (bool, string) { return jsonTricks(d.Addr, w) })
	l.way("another-callers-answer", func() (bool, string) { return anothersAnswer(d.Addr, w) })
	l.way("another-callers-session", func() (bool, string) { return anothersSession(d.Addr) })
	l.way("words", func() (bool, string) { return keyWords(d.Addr) })
	l.way("refused-names-in-metrics", func() (bool, string) { return refusedNames(d) })
	l.way("adapter-header", func() (bool, string) {
		d, err := l.serve(rig.Router{Pool: "name = \"p\"\ninvocation_path = \"/v1/chat/completions\"\n", Strategies: tables,
			Workers: []string{w.addr}})
		if err != nil {
			return false, err.Error()
		}
		return closed(d.Addr, w, wire.Request("POST", "/invocations", chat("secret"), jsonType, bob,
			"X-Amzn-SageMaker-Adapter-Identifier: sim"))
	})
	l.way("urlencoded-json", func() (bool, string) {
		body := `{"model":"sim","messages":[],"x":"&model=secret&"}`
		return closed(d.Addr, w, wire.Request("POST", chatPath, body, "Content-Type: application/x-www-form-urlencoded", bob))
	})
	return nil
}

// closed tells whether a request was refused before it came to a worker.
func closed(addr string, w *echo, request []byte) (bool, string) {
	w.asked()
	a := wire.Once(addr, request)
	reached := w.asked()
	seen := a.String()
	if len(reached) > 0 {
		seen = fmt.Sprintf("a worker got %.80q; answer %s", reached, seen)
	}
	return len(reached) == 0 && (a.Status == 400 || a.Status == 403 || a.Status == 404 || a.Status == 413 ||
		a.Status == 415), seen
}

// attackPaths tries paths that a worker, or a proxy before it, reads otherwise than the router.
func attackPaths(l *lab, d *rig.Proc, w *echo) {
	for name, path := range inOrder(map[string]string{
		"path-encoded-slash": "/v1/responses/..%2fchat%2fcompletions",
		"path-cancel":        "/v1/responses/..%2fchat%2fcompletions/cancel",
	}) {
		l.way(name, func() (bool, string) {
			return closed(d.Addr, w, wire.Request("POST", path, chat("secret"), jsonType, bob))
		})
	}
	for name, path := range inOrder(map[string]string{
		"path-load-adapter":   "/v1/load_lora_adapte%72",
		"path-load-adapter-2": "/v1/%6coad_lora_adapter",
		"path-unload-adapter": "/v1/unload_lora_adapte%72",
		"path-empty-segment":  "/v1//load_lora_adapter",
		"path-last-slash":     "/v1/load_lora_adapter/",
	}) {
		l.way(name, func() (bool, string) {
			body := `{"model":"sim","lora_name":"x","lora_path":"/x"}`
			return closed(d.Addr, w, wire.Request("POST", path, body, jsonType, bob))
		})
	}
}

// jsonTricks names two models in one body, or hides one from a reader.
func jsonTricks(addr string, w *echo) (bool, string) {
	messages := `"messages":[{"role":"user","content":"x"}]`
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	bodies := map[string]string{
		"twice":         `{"model":"sim",` + messages + `,"model":"secret"}`,
		"escaped":       `{"model":"\u0073ecret",` + messages + `}`,
		"escaped name":  `{"model":"sim","\u006dodel":"secret",` + messages + `}`,
		"byte order":    "\xef\xbb\xbf" + `{"model":"secret",` + messages + `}`,
		"wide":          wide(`{"model":"secret",` + messages + `}`),
		"trailing":      `{"model":"sim",` + messages + `}{"model":"secret"}`,
		"comment":       `{"model":"sim",/*"x":"*/"model":"secret",` + messages + `}`,
		"deep":          `{"a":` + deep + `,"model":"secret",` + messages + `}`,
		"not a number":  `{"a":NaN,"model":"secret",` + messages + `}`,
		"late":          `{"a":"` + strings.Repeat("x", 9<<20) + `","model":"secret",` + messages + `}`,
		"late and soon": `{"model":"sim","a":"` + strings.Repeat("x", 9<<20) + `","model":"secret",` + messages + `}`,
		"list":          `{"model":["secret"],` + messages + `}`,
		"nul":           `{"model":"secret\u0000",` + messages + `}`,
		"first":         `{"model":"secret",` + messages + `,"model":"sim"}`,
		"capital":       `{"model":"sim","MODEL":"secret",` + messages + `}`,
	}
	var open []string
	for name, body := range inOrder(bodies) {
		if ok, seen := closed(addr, w, wire.Request("POST", chatPath, body, jsonType, bob)); !ok {
			open = append(open, name+": "+seen)
		}
	}
	control := wire.Once(addr, wire.Request("POST", chatPath, chat("secret"), jsonType, root))
	return len(open) == 0 && control.Status == 200, fmt.Sprintf("%d of %d came through: %.200q; root gets %d", len(open),
		len(bodies), open, control.Status)
}

// wide writes text in UTF-16.
func wide(text string) string {
	b := []byte{0xff, 0xfe}
	for _, c := range []byte(text) {
		b = append(b, c, 0)
	}
	return string(b)
}

// anothersAnswer stores an answer as bob and asks for it as eve.
func anothersAnswer(addr string, w *echo) (bool, string) {
	const ask = `{"model":"sim","input":"bob's own words","store":true}`
	a := wire.Once(addr, wire.Request("POST", "/v1/responses", ask, jsonType, bob))
	var made struct{ ID string }
	if err := json.Unmarshal(a.Body, &made); err != nil || a.Status != 200 || made.ID == "" {
		return false, "bob's own answer: " + a.String()
	}
	path := "/v1/responses/" + made.ID
	own := wire.Once(addr, wire.Request("GET", path, "", bob))
	w.asked()
	got := wire.Once(addr, wire.Request("GET", path, "", eve))
	gone := wire.Once(addr, wire.Request("DELETE", path, "", eve))
	next := wire.Once(addr, wire.Request("POST", "/v1/responses",
		`{"model":"sim","input":"go on","previous_response_id":"`+made.ID+`"}`, jsonType, eve))
	spelt := wire.Once(addr, wire.Request("GET", "/v1/response%73/"+made.ID, "", eve))
	late := wire.Once(addr, wire.Request("POST", "/v1/responses",
		`{"model":"sim","input":"`+strings.Repeat("x", 9<<20)+`","previous_response_id":"`+made.ID+`"}`, jsonType, root))
	reached := w.asked()
	return own.Status == 200 && got.Status == 404 && gone.Status == 404 && next.Status/100 == 4 && len(reached) == 0 &&
			spelt.Status/100 == 4 && late.Status/100 == 4,
		fmt.Sprintf("eve: GET %d, spelt otherwise %d, DELETE %d, previous_response_id %d; root, behind 9 MB: %d; %d of "+
			"them came to a worker; bob: GET %d",
			got.Status, spelt.Status, gone.Status, next.Status, late.Status, len(reached), own.Status)
}

// anothersSession opens a session as bob and uses, reads and ends it as eve.
func anothersSession(addr string) (bool, string) {
	a := wire.Once(addr, wire.Request("POST", "/sessions", `{"model":"sim"}`, jsonType, bob))
	var made struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(a.Body, &made); err != nil || made.ID == "" {
		return false, "bob opens one: " + a.String()
	}
	path := "/sessions/" + made.ID
	got := wire.Once(addr, wire.Request("GET", path, "", eve))
	gone := wire.Once(addr, wire.Request("DELETE", path, "", eve))
	own := wire.Once(addr, wire.Request("GET", path, "", bob))
	return got.Status == 404 && gone.Status == 404 && own.Status == 200,
		fmt.Sprintf("eve: GET %d, DELETE %d; bob afterwards: GET %d", got.Status, gone.Status, own.Status)
}

// keyWords wants the truth in a refusal: 400 for what cannot be read, 403 for what is forbidden.
func keyWords(addr string) (bool, string) {
	ask := func(method, path, body string) int {
		return wire.Once(addr, wire.Request(method, path, body, jsonType, bob)).Status
	}
	cut := ask("POST", chatPath, `{"model":"sim", `)
	missing := ask("POST", chatPath, `{"messages":[{"role":"user","content":"x"}]}`)
	number := ask("POST", chatPath, `{"model":7,"messages":[{"role":"user","content":"x"}]}`)
	forbidden := ask("POST", chatPath, chat("secret"))
	one := ask("GET", "/v1/models/sim", "")
	none := wire.Once(addr, wire.Request("GET", "/v1/models/nope", "", bob))
	return cut == 400 && missing == 400 && number == 400 && forbidden == 403 && one == 200 && none.Status == 404 &&
			strings.Contains(string(none.Body), `"error"`),
		fmt.Sprintf("cut JSON %d, no model %d, model 7 %d, forbidden model %d, GET its model %d, GET none %s", cut, missing,
			number, forbidden, one, none.String())
}

// refusedNames asks for more made-up models than there are series, and then for a real one.
func refusedNames(d *rig.Proc) (bool, string) {
	c := wire.Client{Addr: d.Addr}
	defer c.Close()
	for i := range 1100 {
		c.Do(wire.Request("POST", chatPath, chat(fmt.Sprintf("made-up-%d", i)), jsonType, bob), false)
	}
	a := c.Do(wire.Request("POST", chatPath, chat("sim"), jsonType, bob), false)
	m := string(wire.GetFrom(d.Admin, "/metrics").Body)
	made := strings.Count(m, `model="made-up-`)
	kept := false
	for line := range strings.SplitSeq(m, "\n") {
		kept = kept || strings.HasPrefix(line, "warmpath_requests_total{") && strings.Contains(line, `model="sim"`) &&
			strings.Contains(line, `code="200"`)
	}
	return made == 0 && kept && a.Status == 200, fmt.Sprintf("1,100 refused names: %d of them are labels; the real "+
		"model is one: %v", made, kept)
}
