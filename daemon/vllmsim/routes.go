package vllmsim

import (
	"net/http"
	"strings"
	"time"
)

// Version is the vLLM release whose wire is simulated.
const Version = "0.32.0"

// systemFingerprint is what usage-bearing answers carry; the second half is a hash of the configuration in vLLM.
const systemFingerprint = "vllm-" + Version + "-51300000"

// Handler is the worker's HTTP, for a server of the caller's.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Server", "uvicorn")
	h.Set("Vary", "Origin")
	if strings.HasPrefix(r.URL.Path, "/sim/") {
		s.mux.ServeHTTP(w, r)
		return
	}
	r, ok := s.meet(w, r)
	switch {
	case !ok:
	case !s.authorized(r):
		writeBody(w, http.StatusUnauthorized, []byte(`{"error":"Unauthorized"}`))
	case r.Method == http.MethodPost && r.Header.Get(TokensHeader) != "":
		s.pace(w, r)
	default:
		s.mux.ServeHTTP(w, r)
	}
}

// authorized holds a request against Config.APIKey, which guards these paths alone, as --api-key does.
func (s *Server) authorized(r *http.Request) bool {
	if s.cfg.APIKey == "" || r.Method == http.MethodOptions {
		return true
	}
	for _, guarded := range []string{"/v1", "/v2", "/inference"} {
		if strings.HasPrefix(r.URL.Path, guarded) {
			return r.Header.Get("Authorization") == "Bearer "+s.cfg.APIKey
		}
	}
	return true
}

func (s *Server) routes() *http.ServeMux {
	m := http.NewServeMux()
	on := func(path string, methods string, h http.HandlerFunc) {
		m.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(methods, r.Method) {
				w.Header().Set("Allow", methods)
				writeDetail(w, http.StatusMethodNotAllowed)
				return
			}
			h(w, r)
		})
	}
	on("/v1/chat/completions", "POST", s.inference(s.prepareChat, writeError))
	on("/v1/completions", "POST", s.inference(s.prepareCompletion, writeError))
	on("/invocations", "POST", s.handleInvocations)
	on("/v1/responses", "POST", s.inference(s.prepareResponse, writeError))
	on("/v1/responses/{id}", "GET", s.handleResponse)
	on("/v1/responses/{id}/cancel", "POST", s.handleCancel)
	on("/v1/messages", "POST", s.inference(s.prepareMessages, writeMessagesError))
	on("/v1/messages/count_tokens", "POST", s.handleCountTokens)
	s.poolingRoutes(on)
	s.mediaRoutes(on)
	on("/v1/models", "GET", s.handleModels)
	on("/tokenize", "POST", s.handleTokenize)
	on("/detokenize", "POST", s.handleDetokenize)
	on("/health", "GET", s.handleHealth)
	on("/ping", "GET, POST", s.handleHealth)
	on("/version", "GET", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, map[string]string{"version": Version}) })
	on("/load", "GET", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, map[string]int64{"server_load": s.load.Load()})
	})
	on("/metrics", "GET", s.handleMetrics)
	on("/sim/fault", "POST", s.handleFault)
	on("/sim/stats", "GET", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, s.Stats()) })
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeDetail(w, http.StatusNotFound) })
	return m
}

func (s *Server) handleHealth(w http.ResponseWriter, r *http.Request) {
	if f := s.fault.Load(); f.Mode == FaultSlowHealth {
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

type permission struct {
	ID                 string  `json:"id"`
	Object             string  `json:"object"`
	Created            int64   `json:"created"`
	AllowCreateEngine  bool    `json:"allow_create_engine"`
	AllowSampling      bool    `json:"allow_sampling"`
	AllowLogprobs      bool    `json:"allow_logprobs"`
	AllowSearchIndices bool    `json:"allow_search_indices"`
	AllowView          bool    `json:"allow_view"`
	AllowFineTuning    bool    `json:"allow_fine_tuning"`
	Organization       string  `json:"organization"`
	Group              *string `json:"group"`
	IsBlocking         bool    `json:"is_blocking"`
}

type model struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	OwnedBy     string       `json:"owned_by"`
	Root        string       `json:"root"`
	Parent      *string      `json:"parent"`
	MaxModelLen int          `json:"max_model_len"`
	Permission  []permission `json:"permission"`
}

func (s *Server) handleModels(w http.ResponseWriter, _ *http.Request) {
	now := time.Now().Unix()
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, name := range s.cfg.Models {
		list.Data = append(list.Data, model{
			ID: name, Object: "model", Created: now, OwnedBy: "vllm", Root: s.cfg.Models[0], MaxModelLen: s.cfg.MaxModelLen,
			Permission: []permission{{
				ID: "modelperm-" + newID(), Object: "model_permission", Created: now,
				AllowSampling: true, AllowLogprobs: true, AllowView: true, Organization: "*",
			}},
		})
	}
	writeJSON(w, http.StatusOK, list)
}
