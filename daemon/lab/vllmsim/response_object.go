package vllmsim

import "encoding/json"

// Statuses of a response.
const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusCancelled  = "cancelled"
)

// responseObject is the object of /v1/responses, in vLLM's order of keys.
type responseObject struct {
	ID               string             `json:"id"`
	CreatedAt        int64              `json:"created_at"`
	Incomplete       *incompleteDetails `json:"incomplete_details"`
	Instructions     *string            `json:"instructions"`
	Metadata         json.RawMessage    `json:"metadata"`
	Model            string             `json:"model"`
	Object           string             `json:"object"`
	Output           []any              `json:"output"`
	Parallel         bool               `json:"parallel_tool_calls"`
	Temperature      pyNumber           `json:"temperature"`
	ToolChoice       json.RawMessage    `json:"tool_choice"`
	Tools            []tool             `json:"tools"`
	TopP             pyNumber           `json:"top_p"`
	Background       bool               `json:"background"`
	MaxOutput        *int               `json:"max_output_tokens"`
	MaxToolCalls     *int               `json:"max_tool_calls"`
	Previous         *string            `json:"previous_response_id"`
	Prompt           *string            `json:"prompt"`
	Reasoning        *string            `json:"reasoning"`
	ServiceTier      string             `json:"service_tier"`
	Status           string             `json:"status"`
	Text             *string            `json:"text"`
	TopLogprobs      *int               `json:"top_logprobs"`
	Truncation       string             `json:"truncation"`
	Usage            *responseUsage     `json:"usage"`
	User             *string            `json:"user"`
	PresencePenalty  pyNumber           `json:"presence_penalty"`
	FrequencyPenalty pyNumber           `json:"frequency_penalty"`
	KVTransfer       *transferParams    `json:"kv_transfer_params"`
	ECTransfer       *string            `json:"ec_transfer_params"`
	InputMessages    *string            `json:"input_messages"`
	OutputMessages   *string            `json:"output_messages"`
}

// incompleteDetails states why an answer is not whole.
type incompleteDetails struct {
	Reason string `json:"reason"`
}

// responseUsage is the usage of /v1/responses.
type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached        int   `json:"cached_tokens"`
		Written       int   `json:"cache_write_tokens"`
		PerTurn       []int `json:"input_tokens_per_turn"`
		CachedPerTurn []int `json:"cached_tokens_per_turn"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning   int   `json:"reasoning_tokens"`
		Tool        int   `json:"tool_output_tokens"`
		PerTurn     []int `json:"output_tokens_per_turn"`
		ToolPerTurn []int `json:"tool_output_tokens_per_turn"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

type outputText struct {
	Annotations []any  `json:"annotations"`
	Text        string `json:"text"`
	Type        string `json:"type"`
	Logprobs    []any  `json:"logprobs"`
}

type outputMessage struct {
	ID      string  `json:"id"`
	Content []any   `json:"content"`
	Role    string  `json:"role"`
	Status  string  `json:"status"`
	Type    string  `json:"type"`
	Phase   *string `json:"phase"`
}

type outputCall struct {
	Arguments string `json:"arguments"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	ID        string `json:"id"`
	Status    string `json:"status"`
}
