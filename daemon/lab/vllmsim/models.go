package vllmsim

import (
	"cmp"
	"net/http"
	"time"
)

// permission is what vLLM answers about every model.
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

// modelCard is one entry of /v1/models.
type modelCard struct {
	ID          string       `json:"id"`
	Object      string       `json:"object"`
	Created     int64        `json:"created"`
	OwnedBy     string       `json:"owned_by"`
	Root        string       `json:"root"`
	Parent      *string      `json:"parent"`
	MaxModelLen *int         `json:"max_model_len"`
	Permission  []permission `json:"permission"`
}

// listModels serves GET /v1/models.
func listModels(w http.ResponseWriter, cfg *Config, adapters *loras) {
	now := time.Now().Unix()
	list := struct {
		Object string      `json:"object"`
		Data   []modelCard `json:"data"`
	}{Object: "list"}
	owner := cmp.Or(cfg.Engine, "vllm")
	for _, name := range cfg.Models {
		list.Data = append(list.Data, modelCard{
			ID:          name,
			Object:      "model",
			Created:     now,
			OwnedBy:     owner,
			Root:        cfg.Models[0],
			MaxModelLen: &cfg.MaxModelLen,
			Permission: []permission{{
				ID:            "modelperm-" + newID(),
				Object:        "model_permission",
				Created:       now,
				AllowSampling: true,
				AllowLogprobs: true,
				AllowView:     true,
				Organization:  "*",
			}},
		})
	}
	for _, a := range adapters.list() {
		list.Data = append(list.Data, modelCard{ID: a.name, Object: "model", Created: now, OwnedBy: owner, Root: a.path,
			Parent: &cfg.Models[0], Permission: []permission{}})
	}
	writeJSON(w, http.StatusOK, list)
}
