package prompt

// Kind is the shape of an endpoint's body.
type Kind uint8

// These kinds have prompts that are understood. The body of any other still has model, stream and session key.
const (
	Other       Kind = iota
	Chat             // OpenAI's chat: messages
	Completion       // OpenAI's older completion: prompt
	Tokens           // vLLM's tokens in, tokens out: token_ids, and sampling_params
	Responses        // OpenAI's Responses: input and instructions
	Messages         // Anthropic's Messages: system and messages
	CountTokens      // a Messages body of which only the tokens are counted
	Embedding        // input, or messages: embeddings, pooling, classification
	Rerank           // a query and documents
	Score            // two texts or lists of texts
	Tokenize         // prompt or messages, of which only the tokens are wanted
	Invocations      // SageMaker's door to all of these: Parse turns it into the kind that the body shows

	Kinds = iota // how many there are
)

// kinds are the paths as vLLM serves them (0.11 to 0.32): what is listed once has no second form there, so that
// /chat/completions or /v1/tokenize are 404 and Other. Behind each
// is the version with which it came, or the first that is read here.
var kinds = map[string]Kind{
	"/v1/chat/completions":       Chat,        // 0.11
	"/v1/chat/completions/batch": Chat,        // 0.19: messages is a list of conversations
	"/v1/completions":            Completion,  // 0.11
	"/inference/v1/generate":     Tokens,      // 0.11.1
	"/v1/responses":              Responses,   // 0.11
	"/v1/messages":               Messages,    // 0.11
	"/v1/messages/count_tokens":  CountTokens, // 0.11
	"/v1/embeddings":             Embedding,   // 0.11
	"/pooling":                   Embedding,   // 0.11
	"/classify":                  Embedding,   // 0.11
	"/rerank":                    Rerank,      // 0.11
	"/v1/rerank":                 Rerank,      // 0.11
	"/v2/rerank":                 Rerank,      // 0.11
	"/score":                     Score,       // 0.11
	"/v1/score":                  Score,       // 0.11
	"/tokenize":                  Tokenize,    // 0.11
	"/invocations":               Invocations, // 0.11
}

// KindOf returns the shape of a request's body by its method and path (without query). Only a POST has one. With /v1
// and without: rerank (/v2 too) and score. Only with /v1: chat/completions and its batch, completions, responses,
// messages, messages/count_tokens and embeddings. Only without: pooling, classify, tokenize and invocations. All else
// is Other, the paths below /v1/responses/{id} and the multipart endpoints (see [Multipart]) among them.
func KindOf(method, path string) Kind {
	if method != "POST" {
		return Other
	}
	return kinds[path]
}

var kindNames = [...]string{"other", "chat", "completion", "tokens", "responses", "messages", "count_tokens",
	"embedding", "rerank", "score", "tokenize", "invocations"}

// String is the kind's name in logs.
func (k Kind) String() string { return kindNames[min(max(int(k), 0), len(kindNames)-1)] }

// Generates reports whether an answer of this kind is generated text, which continues the prompt in the worker's
// cache and comes back with the client's next turn.
func (k Kind) Generates() bool {
	return k == Chat || k.completes() || k == Responses || k == Messages
}

// completes reports whether the answer continues bare text or token ids, and not a chat.
func (k Kind) completes() bool { return k == Completion || k == Tokens }

// hasMessages reports whether a list of messages is this kind's prompt.
func (k Kind) hasMessages() bool {
	switch k {
	case Chat, Messages, CountTokens, Embedding, Tokenize, Invocations:
		return true
	}
	return false
}
