package daemon

import (
	"strings"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/sagemaker"
)

// shape is how an endpoint's errors look.
type shape uint8

const (
	openAI    shape = iota // {"error":{...}}
	responses              // the same; in a stream an event of type error
	anthropic              // {"type":"error","error":{...}}
	aws                    // {"Message":...} and x-amzn-ErrorType
)

// outside are the paths beside /v1 that vLLM serves and that go to a worker. A path ending in / stands for all below it.
var outside = map[string]bool{
	"/invocations": true, "/tokenize": true, "/detokenize": true, "/pooling": true, "/classify": true, "/score": true,
	"/rerank": true, "/v2/rerank": true, "/inference/v1/generate": true,
}

// aliases are paths under which clients with another base URL look for an endpoint.
var aliases = map[string]string{"/completions": "/v1/completions", "/chat/completions": "/v1/chat/completions"}

// endpoint tells whether requests for a path go to a worker, and under which path. Everything else under /v1 does as well:
// new endpoints of vLLM work before they are known here.
func endpoint(path string) (string, bool) {
	if to, ok := aliases[path]; ok {
		return to, true
	}
	if _, ok := sessionsPath(path); ok {
		return path, true
	}
	if _, _, ok := sagemaker.Path(path); ok {
		return path, true
	}
	return path, strings.HasPrefix(path, "/v1/") || outside[path]
}

func shapeOf(path string) shape {
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		return anthropic
	case strings.HasPrefix(path, "/v1/responses"):
		return responses
	case strings.HasPrefix(path, "/endpoints/"):
		return aws
	}
	return openAI
}

// maxTokenize bounds the text that goes to /tokenize: vLLM tokenizes whatever comes, at some 650 bytes of its memory a
// byte, and one body of 32 MB has been seen to end a worker. A token has some 4 bytes; 1 MiB is above a prompt of
// 200,000 tokens.
const maxTokenize = 1 << 20

func tooLongToTokenize(kind prompt.Kind, in *Inbound) bool {
	return kind == prompt.Tokenize && (len(in.Body) > maxTokenize || in.Tail != nil)
}
