package bugs

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// An adapter is loaded at one worker, moves to another, or is loaded through the router, and is used at once.
var adapters = []wallCase{
	{"an-adapter-is-served-soon-after-it-is-loaded", loaded},
	{"an-adapter-that-moved-is-served-soon-at-its-new-worker", moved},
	{"an-adapter-loaded-through-the-router-is-served-at-once", loadedThrough},
	{"an-adapter-is-unloaded-through-the-router", unloadedThrough},
	{"a-model-that-nobody-has-is-told-soon-and-asks-little", unknownModel},
}

// loader is a worker whose models change.
type loader struct {
	mu     sync.Mutex
	models []string
	listed atomic.Int64
}

func (w *loader) set(models ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models = models
}

func (w *loader) list() (all []engine.Model) {
	w.listed.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.models {
		all = append(all, engine.Model{ID: m})
	}
	return all
}

func (w *loader) post(c *wire.Call) bool {
	var asked struct {
		Model   string
		Adapter string `json:"lora_name"`
	}
	_ = json.Unmarshal(c.Text, &asked)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch c.Path {
	case "/v1/load_lora_adapter":
		w.models = append(w.models, asked.Adapter)
		return c.Plain(200, "text/plain", "Success")
	case "/v1/unload_lora_adapter":
		if !slices.Contains(w.models, asked.Adapter) {
			return engine.Refuse(c, 404, "The adapter is not found.")
		}
		w.models = slices.DeleteFunc(w.models, func(m string) bool { return m == asked.Adapter })
		return c.Plain(200, "text/plain", "Success")
	}
	if !slices.Contains(w.models, asked.Model) {
		return engine.Refuse(c, 404, fmt.Sprintf("The model `%s` does not exist.", asked.Model))
	}
	return engine.Echo(c)
}

// loaders starts n workers that have the model sim.
func (l *lab) loaders(n int) (all []*loader, engines []*engine.Engine) {
	for range n {
		w := &loader{models: []string{"sim"}}
		all = append(all, w)
		engines = append(engines, l.engine(&engine.Engine{Post: w.post, Listed: w.list}))
	}
	return all, engines
}

const adapterChat = `{"model":"ad","messages":[{"role":"user","content":"x"}]}`

// until sends chats to the adapter until one is served, and tells how long that took; d at most.
func (r *router) until(d time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < d && !served(r.post(chatPath, adapterChat)) {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// use sends ten chats to the adapter and tells how many were refused.
func (r *router) use() int {
	return refused(clients(1, 10, func(int, int) wire.Answer { return r.post(chatPath, adapterChat) }))
}

func loaded(l *lab) (string, bool) {
	all, engines := l.loaders(2)
	r := l.router(engines...)
	time.Sleep(time.Second)
	all[1].set("sim", "ad")
	took, bad := r.until(15*time.Second), r.use()
	return fmt.Sprintf("served after %.1f s, then %d of 10 refused", took.Seconds(), bad), took < 2*time.Second && bad == 0
}

func moved(l *lab) (string, bool) {
	all, engines := l.loaders(2)
	all[1].set("sim", "ad")
	r := l.router(engines...)
	time.Sleep(time.Second)
	first := r.use()
	all[0].set("sim", "ad")
	all[1].set("sim")
	took, bad := r.until(15*time.Second), r.use()
	return fmt.Sprintf("%d of 10 refused before; served after %.1f s, then %d of 10 refused", first, took.Seconds(), bad),
		first == 0 && took < 2*time.Second && bad == 0
}

const adapterCall = `{"lora_name":"ad","lora_path":"/x"}`

func loadedThrough(l *lab) (string, bool) {
	_, engines := l.loaders(2)
	r := l.router(engines...)
	time.Sleep(time.Second)
	a := r.post("/v1/load_lora_adapter", adapterCall)
	took, bad := r.until(12*time.Second), r.use()
	return fmt.Sprintf("load: %d; served after %.1f s, then %d of 10 refused", a.Status, took.Seconds(), bad),
		served(a) && took < 2*time.Second && bad == 0
}

func unloadedThrough(l *lab) (string, bool) {
	all, engines := l.loaders(2)
	all[1].set("sim", "ad")
	r := l.router(engines...)
	time.Sleep(time.Second)
	a := r.post("/v1/unload_lora_adapter", `{"lora_name":"ad"}`)
	b := r.post("/v1/unload_lora_adapter", `{"lora_name":"ad"}`)
	gone := !slices.Contains(all[1].list(), engine.Model{ID: "ad"})
	return fmt.Sprintf("unload: %d, again: %d; unloaded: %v", a.Status, b.Status, gone), (served(a) || served(b)) && gone
}

// unknownModel is a control: a refusal comes soon, and the workers are not asked for their models once a request.
func unknownModel(l *lab) (string, bool) {
	all, engines := l.loaders(2)
	r := l.router(engines...)
	time.Sleep(time.Second)
	before := all[0].listed.Load() + all[1].listed.Load()
	late := 0
	for _, a := range every(40*time.Millisecond, 50, func(int) wire.Answer { return r.post(chatPath, adapterChat) }) {
		if a.Status != 404 || a.Took > time.Second {
			late++
		}
	}
	asked := all[0].listed.Load() + all[1].listed.Load() - before
	return fmt.Sprintf("%d of 50 late or no 404; two workers were asked for their models %d times in 2 s", late, asked),
		late == 0 && asked <= 10
}
