package vllmsim

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Version is the vLLM release whose wire is simulated.
const Version = "0.32.0"

// process is the state that ends with a worker's process and begins again with the next one: the engine, the stored
// responses, the sessions and the counts.
type process struct {
	cfg      *Config
	born     time.Time
	infer    inference
	sessions *sessionStore
	pins     *pins
	loras    *loras
	weights  weights
	paced    atomic.Int64 // open requests that the engine knows nothing of
	fault    func() *fault
	router   router
}

// newProcess starts an engine and registers what the worker serves. fault returns the fault in force, and setFault is
// POST /sim/fault.
func newProcess(cfg *Config, fault func() *fault, setFault http.HandlerFunc) (*process, error) {
	rs, err := newRanks(cfg)
	if err != nil {
		return nil, err
	}
	p := &process{
		cfg:      cfg,
		born:     time.Now(),
		infer:    inference{ranks: rs},
		sessions: newSessionStore(cfg.SessionLife),
		pins:     newPins(cfg),
		loras:    newLoras(cfg, rs),
		fault:    fault,
		router:   newRouter(),
	}
	p.routeInference()
	p.routeRest()
	p.router.on("/sim/fault", "POST", setFault)
	return p, nil
}

// checker returns what refuses and prepares the process's requests.
func (p *process) checker() checker {
	return checker{cfg: p.cfg, ranks: p.infer.ranks, pins: p.pins, loras: p.loras}
}

// routeInference registers what goes through the engine.
func (p *process) routeInference() {
	m, c := p.router, p.checker()
	chat := chatAPI{c}
	responses := responsesAPI{checker: c, store: newResponseStore(), infer: &p.infer}
	messages := messagesAPI{c}
	invocations := sessionAPI{
		enabled: p.cfg.Sessions,
		store:   p.sessions,
		infer:   p.infer.handler(chat.prepareEither, writeError),
	}
	m.on("/v1/chat/completions", "POST", p.infer.handler(chat.prepareChat, writeError))
	m.on("/v1/completions", "POST", p.infer.handler(chat.prepareCompletion, writeError))
	m.on("/invocations", "POST", invocations.serve)
	m.on("/v1/responses", "POST", p.infer.handler(responses.prepare, writeError))
	m.on("/v1/responses/{id}", "GET", responses.get)
	m.on("/v1/responses/{id}/cancel", "POST", responses.cancel)
	m.on("/v1/messages", "POST", p.infer.handler(messages.prepare, writeMessagesError))
	render := renderAPI{p.cfg.ScaleOut}
	m.on("/v1/chat/completions/render", "POST", render.handler(chat.prepareChat, false))
	m.on("/v1/completions/render", "POST", render.handler(chat.prepareCompletion, true))
	m.on("/v1/messages/render", "POST", render.handler(messages.prepare, false))
	m.on("/v1/messages/count_tokens", "POST", messages.countTokens)
}

// routeRest registers what is answered at once.
func (p *process) routeRest() {
	m, c := p.router, p.checker()
	tokenizer := tokenizerAPI{c}
	poolingAPI{c}.routes(m)
	rerankAPI{c}.routes(m)
	mediaAPI{checker: c, load: &p.infer.load}.routes(m)
	m.on("/tokenize", "POST", tokenizer.tokenize)
	m.on("/detokenize", "POST", tokenizer.detokenize)
	m.on("/v1/models", "GET", func(w http.ResponseWriter, _ *http.Request) { listModels(w, p.cfg, p.loras) })
	p.loras.routes(m)
	m.on("/health", "GET", p.health)
	m.on("/ping", "GET, POST", p.health)
	m.on("/version", "GET", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": Version})
	})
	m.on("/load", "GET", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]int64{"server_load": p.infer.load.Load()})
	})
	m.on("/metrics", "GET", p.metrics)
	if p.cfg.Engine == EngineSGLang {
		sglangAPI{p.cfg}.routes(m, p.health)
	} else {
		cacheAPI{p.infer.ranks}.routes(m, p.cfg.DevMode)
		if p.cfg.DevMode {
			trainingAPI{cfg: p.cfg, ranks: p.infer.ranks, weights: &p.weights}.routes(m)
		}
	}
	if p.cfg.Connector != "" {
		m.on(pulledPath, "POST", p.pins.pulled)
		m.on(heldPath, "POST", p.pins.held)
	}
	m.on(blocksPath, "POST", p.infer.ranks.blocks)
	m.on("/sim/stats", "GET", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, p.stats()) })
}

// serve answers one request, or lets the fault in force answer it.
func (p *process) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Server", "uvicorn")
	h.Set("Vary", "Origin")
	if strings.HasPrefix(r.URL.Path, "/sim/") {
		p.router.ServeHTTP(w, r)
		return
	}
	r, ok := p.fault().meet(w, r)
	switch {
	case !ok:
	case !p.authorized(r):
		writeBody(w, http.StatusUnauthorized, []byte(`{"error":"Unauthorized"}`))
	case r.Method == http.MethodPost && r.Header.Get(TokensHeader) != "":
		paceAPI{running: &p.paced}.serve(w, r)
	default:
		p.router.ServeHTTP(w, r)
	}
}

// authorized compares a request with Config.APIKey, which guards these paths alone, as --api-key does.
func (p *process) authorized(r *http.Request) bool {
	if p.cfg.APIKey == "" || r.Method == http.MethodOptions {
		return true
	}
	for _, guarded := range []string{"/v1", "/v2", "/inference"} {
		if strings.HasPrefix(r.URL.Path, guarded) {
			return r.Header.Get("Authorization") == "Bearer "+p.cfg.APIKey
		}
	}
	return true
}

func (p *process) health(w http.ResponseWriter, r *http.Request) {
	if f := p.fault(); f.Mode == FaultSlowHealth {
		delay := f.Delay
		if delay <= 0 {
			delay = 10
		}
		select {
		case <-time.After(time.Duration(delay * float64(time.Second))):
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Length", "0")
}

func (p *process) metrics(w http.ResponseWriter, _ *http.Request) {
	list, _ := p.infer.ranks.stats()
	w.Header().Set("Content-Type", "text/plain; version=1.0.0; charset=utf-8")
	if p.cfg.Engine == EngineSGLang {
		w.Write(exposeSGLang(p.cfg, list, int(p.paced.Load())))
		return
	}
	w.Write(exposeMetrics(p.cfg, list, p.born, int(p.paced.Load())))
	p.loras.expose(w)
	if p.cfg.DevMode {
		w.Write(p.weights.expose(p.cfg, list))
	}
	if p.cfg.Connector != "" {
		w.Write(p.pins.expose(p.cfg, list))
	}
}

// stats returns what the process has done.
func (p *process) stats() Stats {
	list, uptime := p.infer.ranks.stats()
	st := newStats(p.cfg.ID, list, uptime)
	st.Running += int(p.paced.Load())
	st.WeightVersion = p.weights.label()
	st.PinsExpired, st.BlocksStranded = p.pins.expired()
	st.Sessions, st.SessionBytes, st.SessionUses = p.sessions.count()
	return st
}
