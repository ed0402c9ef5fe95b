package vllmsim

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// loras are the LoRA adapters that a worker serves. vLLM lists them like models.
type loras struct {
	cfg   *Config
	ranks *ranks

	mu  sync.Mutex // guards all below
	all []lora
}

type lora struct{ name, path string }

func newLoras(cfg *Config, rs *ranks) *loras {
	l := &loras{cfg: cfg, ranks: rs}
	for _, name := range cfg.Loras {
		l.all = append(l.all, lora{name: name, path: name})
	}
	return l
}

// has reports whether the worker serves the adapter. A nil loras has none.
func (l *loras) has(name string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.find(name) >= 0
}

// find wants mu.
func (l *loras) find(name string) int {
	return slices.IndexFunc(l.all, func(a lora) bool { return a.name == name })
}

func (l *loras) list() []lora {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// routes registers vLLM's calls, which it has with VLLM_ALLOW_RUNTIME_LORA_UPDATING.
func (l *loras) routes(m router) {
	if l.cfg.MaxLoras > 0 {
		m.on("/v1/load_lora_adapter", "POST", l.load)
		m.on("/v1/unload_lora_adapter", "POST", l.unload)
	}
}

// loraCall is the body of a call.
type loraCall struct {
	Name    string `json:"lora_name"`
	Path    string `json:"lora_path"`
	InPlace bool   `json:"load_inplace"`
}

func readLora(w http.ResponseWriter, r *http.Request) (c loraCall, ok bool) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return c, false
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		writeError(w, invalidJSON(0, err))
		return c, false
	}
	return c, true
}

// load loads an adapter, which takes its time, and lists it then.
func (l *loras) load(w http.ResponseWriter, r *http.Request) {
	c, ok := readLora(w, r)
	switch {
	case !ok:
		return
	case c.Name == "" || c.Path == "":
		writeError(w, newError(http.StatusBadRequest, "InvalidUserInput", "",
			"Both 'lora_name' and 'lora_path' must be provided."))
		return
	case l.has(c.Name) && !c.InPlace:
		writeError(w, newError(http.StatusBadRequest, "InvalidUserInput", "", fmt.Sprintf("The lora adapter '%s' has "+
			"already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.", c.Name)))
		return
	case strings.HasPrefix(path.Base(c.Path), "missing"):
		writeError(w, newError(http.StatusNotFound, "NotFoundError", "", "No adapter found for "+c.Path))
		return
	}
	select {
	case <-time.After(time.Duration(l.cfg.LoraLoad / l.cfg.Speed * float64(time.Second))):
	case <-r.Context().Done():
		return
	}
	l.ranks.each(func(d *driver) { d.adapt(func(e *engine.Engine) { e.LoadAdapter(c.Name) }) })
	l.mu.Lock()
	if l.find(c.Name) < 0 {
		l.all = append(l.all, lora{name: c.Name, path: c.Path})
	}
	l.mu.Unlock()
	writeText(w, fmt.Sprintf("Success: LoRA adapter '%s' added successfully.", c.Name))
}

// unload forgets an adapter. What runs with it ends.
func (l *loras) unload(w http.ResponseWriter, r *http.Request) {
	c, ok := readLora(w, r)
	if !ok {
		return
	}
	l.mu.Lock()
	i := l.find(c.Name)
	if i >= 0 {
		l.all = slices.Delete(l.all, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 {
		writeError(w, newError(http.StatusNotFound, "NotFoundError", "",
			fmt.Sprintf("The lora adapter '%s' cannot be found.", c.Name)))
		return
	}
	l.ranks.each(func(d *driver) { d.adapt(func(e *engine.Engine) { e.DropAdapter(c.Name) }) })
	writeText(w, fmt.Sprintf("Success: LoRA adapter '%s' removed successfully.", c.Name))
}

// expose writes vLLM's gauge of adapters: its value is the time.
func (l *loras) expose(w io.Writer) {
	if l.cfg.MaxLoras == 0 {
		return
	}
	var running, waiting []string
	l.ranks.each(func(d *driver) {
		d.adapt(func(e *engine.Engine) {
			r, q := e.Adapters()
			running, waiting = append(running, r...), append(waiting, q...)
		})
	})
	const name = "vllm:lora_requests_info"
	fmt.Fprintf(w, "# HELP %s Running stats on lora requests.\n# TYPE %s gauge\n%s{max_lora=%q,"+
		"running_lora_adapters=%q,waiting_lora_adapters=%q} %s\n", name, name, name, strconv.Itoa(l.cfg.MaxLoras),
		strings.Join(running, ","), strings.Join(waiting, ","), pyFloat(float64(time.Now().UnixNano())/1e9))
}

// adapt has f use the engine as it is now.
func (d *driver) adapt(f func(*engine.Engine)) {
	d.mu.Lock()
	d.advance()
	f(d.engine)
	d.mu.Unlock()
	d.rouse()
}
