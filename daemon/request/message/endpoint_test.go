package message

import (
	"net/url"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

type classified func(method, path string, want Endpoint)

// classifies returns the check of one row. A row without a path has the one that came.
func classifies(t *testing.T) classified {
	return func(method, path string, want Endpoint) {
		t.Helper()
		if want.Path == "" {
			want.Path = path
		}
		if got := Classify(method, path); got != want {
			t.Errorf("%s %s: %+v; want %+v", method, path, got, want)
		}
	}
}

// TestClassifyWhatNobodyServes: what vLLM serves for its operator is nowhere, as is what no one serves.
func TestClassifyWhatNobodyServes(t *testing.T) {
	f := classifies(t)
	for _, path := range []string{"", "/", "*", "/v1", "/health", "/metrics", "/sleep", "/load_lora_adapter", "/sessionsx",
		"/endpoints", "/endpoints/a", "/endpoints/a/other", "/%76%31/chat/completions", "/%74okenize", "/invocations/", "/V1/models"} {
		want := Endpoint{Role: Nobody}
		if strings.HasPrefix(path, "/endpoints/") {
			want.Shape = AWS
		}
		want.Path = path
		f("POST", path, want)
		f("GET", path, want)
	}
	// Malformed, in the shape of what it looks like.
	f("POST", "/v1/../sleep", Endpoint{Role: Malformed})
	f("POST", "/v1//models", Endpoint{Role: Malformed})
	f("GET", "/v1/models/%zz", Endpoint{Role: Malformed})
	f("GET", "/sessions/..%2fmetrics", Endpoint{Role: Malformed})
	f("POST", "/v1/messages/%2e%2e", Endpoint{Role: Malformed, Shape: Anthropic})
	f("POST", "/v1/responses/..", Endpoint{Role: Malformed, Shape: Responses})
}

// TestClassifyHead: HEAD is GET without the answer's body, and a worker's affair where GET is.
func TestClassifyHead(t *testing.T) {
	f := classifies(t)
	f("HEAD", "/v1/models", Endpoint{Role: Models})
	f("HEAD", "/v1/models/org%2Fm", Endpoint{Role: Model, ID: "org/m"})
	f("HEAD", "/v1/models/", Endpoint{Role: Models})
	f("HEAD", "/v1/chat/completions", Endpoint{Role: Worker})
	f("HEAD", "/nowhere", Endpoint{Role: Nobody})
	f("POST", "/v1/models", Endpoint{Role: Worker})
}

// TestClassifyWorker: everything else goes to a worker, by its kind of body.
func TestClassifyWorker(t *testing.T) {
	f := classifies(t)
	for path, kind := range map[string]prompt.Kind{
		"/v1/chat/completions": prompt.Chat, "/v1/completions": prompt.Completion, "/v1/embeddings": prompt.Embedding,
		"/v1/rerank": prompt.Rerank, "/rerank": prompt.Rerank, "/v2/rerank": prompt.Rerank, "/score": prompt.Score,
		"/v1/score": prompt.Score, "/tokenize": prompt.Tokenize, "/detokenize": prompt.Other, "/pooling": prompt.Embedding,
		"/classify": prompt.Embedding, "/inference/v1/generate": prompt.Tokens,
		"/v2/embed": prompt.Other, "/cohere/v2/chat": prompt.Other, "/v1/audio/speech": prompt.Other,
	} {
		f("POST", path, Endpoint{Role: Worker, Kind: kind})
		f("GET", path, Endpoint{Role: Worker})
	}
	f("POST", "/v1/messages", Endpoint{Role: Worker, Shape: Anthropic, Kind: prompt.Messages})
	f("POST", "/v1/messages/count_tokens", Endpoint{Role: Worker, Shape: Anthropic, Kind: prompt.CountTokens})
	f("POST", "/v1/responses", Endpoint{Role: Worker, Shape: Responses, Kind: prompt.Responses})
	f("POST", "/v1/%63hat/completions", Endpoint{Role: Worker, Kind: prompt.Chat, Path: "/v1/chat/completions"})
	f("POST", "/v1/%6Dessages", Endpoint{Role: Worker, Shape: Anthropic, Kind: prompt.Messages, Path: "/v1/messages"})
	f("POST", "/chat/completions", Endpoint{Role: Worker, Kind: prompt.Chat, Path: "/v1/chat/completions"})
	f("POST", "/completions", Endpoint{Role: Worker, Kind: prompt.Completion, Path: "/v1/completions"})
	f("POST", "/v1/models", Endpoint{Role: Worker})
	f("POST", "/v1/models/sim", Endpoint{Role: Worker})

	// Adapters, however they are spelt.
	f("POST", "/v1/load_lora_adapter", Endpoint{Role: Worker, Adapters: true})
	f("POST", "/v1/unload_lora_adapter", Endpoint{Role: Worker, Adapters: true})
	f("POST", "/v1/load%5flora%5Fadapter", Endpoint{Role: Worker, Adapters: true, Path: "/v1/load_lora_adapter"})
	f("GET", "/v1/LOAD_LORA_ADAPTER", Endpoint{Role: Worker, Adapters: true})
}

// TestClassifyStoredResponse: a path may name a stored response, and then name no model.
func TestClassifyStoredResponse(t *testing.T) {
	f := classifies(t)
	stored := Endpoint{Role: Worker, Shape: Responses, ID: "resp_1", Stored: true}
	f("GET", "/v1/responses/resp_1", stored)
	f("DELETE", "/v1/responses/resp_1", stored)
	f("POST", "/v1/responses/resp_1/cancel", stored)
	f("GET", "/v1/responses/resp_1/input_items", stored)
	stored.Path = "/v1/responses/resp_1"
	f("GET", "/v1/%72esponses/resp%5f1", stored)
	f("POST", "/v1/responses/compact", Endpoint{Role: Worker, Shape: Responses}) // an endpoint beside the ids
	f("GET", "/v1/responses/", Endpoint{Role: Worker, Shape: Responses})
	named := Endpoint{Role: Worker, Shape: Responses, ID: "resp_1"} // its id counts, but it may name a model
	f("PUT", "/v1/responses/resp_1", named)
	f("GET", "/v1/responses/resp_1/cancel", named)
	f("POST", "/v1/responses/resp_1/input_items", named)
	f("GET", "/v1/responses/resp_1/other", named)
	f("GET", "/v1/responses/resp%20", Endpoint{Role: Worker, Shape: Responses, ID: "resp%20"})
	f("POST", "/v1/responses//cancel", Endpoint{Role: Malformed, Shape: Responses})
}

// TestClassifyModels: the router answers for models itself.
func TestClassifyModels(t *testing.T) {
	f := classifies(t)
	f("GET", "/v1/models", Endpoint{Role: Models})
	f("GET", "/v1/mod%65ls", Endpoint{Role: Models, Path: "/v1/models"})
	f("GET", "/v1/models/sim", Endpoint{Role: Model, ID: "sim"})
	f("GET", "/v1/models/org/name", Endpoint{Role: Model, ID: "org/name"})
	f("GET", "/v1/models/org%2Fname", Endpoint{Role: Model, ID: "org/name"})
	f("GET", "/v1/models/%2e%2e/..", Endpoint{Role: Model, ID: "../.."})
	f("GET", "/v1/models/", Endpoint{Role: Models})
}

// TestClassifySessions: the router answers for sessions itself.
func TestClassifySessions(t *testing.T) {
	f := classifies(t)
	for _, method := range []string{"GET", "POST", "DELETE"} {
		f(method, "/sessions", Endpoint{Role: Sessions})
		f(method, "/sessions/", Endpoint{Role: Sessions})
		f(method, "/sessions/a-1", Endpoint{Role: Sessions, ID: "a-1"})
		f(method, "/sessions/%61-1", Endpoint{Role: Sessions, ID: "a-1", Path: "/sessions/a-1"})
		f(method, "/sessions/a/b", Endpoint{Role: Sessions, ID: "a/b"})
	}
}

// TestClassifySageMaker: a POST is the call, whatever the endpoint's name is; with any other method
// there is nothing, as no worker knows the path.
func TestClassifySageMaker(t *testing.T) {
	f := classifies(t)
	f("POST", "/invocations", Endpoint{Role: Invocations, Kind: prompt.Invocations})
	f("GET", "/invocations", Endpoint{Role: Worker})
	for _, path := range []string{"/endpoints/a/invocations", "/endpoints/a/invocations-response-stream", "/endpoints/%61/invocations",
		"/endpoints/../invocations", "/endpoints//invocations"} {
		f("POST", path, Endpoint{Role: SageMaker, Shape: AWS, Kind: prompt.Invocations})
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"} {
			f(method, path, Endpoint{Role: Nobody, Shape: AWS})
		}
	}
}

// TestClassifyModelSpelledOtherwise: a model's page is the router's own, however its path is encoded.
func TestClassifyModelSpelledOtherwise(t *testing.T) {
	want := Endpoint{Role: Model, ID: "sim", Path: "/v1/models/sim"}
	if got := Classify("GET", "/v1/mod%65ls/%73im"); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}

// FuzzClassify: what goes to a worker means to it what it was judged as, and judged again it is the same.
func FuzzClassify(f *testing.F) {
	for _, path := range []string{"/v1/chat/completions", "/completions", "/v1/mod%65ls/a", "/v1/models/a%2fb", "/v1/..%2fsleep",
		"/v1/a%252e%252e/b", "/endpoints/%61/invocations", "/endpoints/x/invocations-response-stream", "/sessions/%61", "/invocations",
		"/v1/responses/resp%5f1/cancel", "/v1/load_lora%5Fadapter", `/v1/\..`, "/tokenize"} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			f.Add(method, path)
		}
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		e := Classify(method, path)
		switch e.Role {
		case Nobody, Malformed, Model, Invocations, SageMaker: // no worker sees their path
			return
		}
		if again := Classify(method, e.Path); again != e {
			t.Errorf("%s %q: %+v, and again %+v", method, path, e, again)
		}
		decoded, err := url.PathUnescape(e.Path)
		if err != nil {
			t.Fatalf("%s %q: %q has an escape that is none", method, path, e.Path)
		}
		for segment := range strings.SplitSeq(decoded, "/") {
			if segment == "." || segment == ".." {
				t.Errorf("%s %q: %q has a dot segment", method, path, e.Path)
			}
		}
		if strings.ContainsAny(decoded, "\\\r\n\x00") || strings.Contains(decoded, "//") {
			t.Errorf("%s %q: a worker may resolve %q otherwise", method, path, e.Path)
		}
	})
}
