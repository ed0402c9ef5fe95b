package message

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/sagemaker"
)

// Shape is how an endpoint's errors look.
type Shape uint8

// The shapes.
const (
	OpenAI    Shape = iota // {"error":{...}}
	Responses              // the same; in a stream an event of type error
	Anthropic              // {"type":"error","error":{...}}
	AWS                    // {"Message":...} and x-amzn-ErrorType
)

// Role names the part that answers at an endpoint.
type Role uint8

// The roles.
const (
	Nobody      Role = iota // there is nothing at the path: 404
	Malformed               // a worker, or a proxy before it, may resolve the path to another than the one judged: 400
	Worker                  // a worker
	Models                  // GET /v1/models: the router
	Model                   // GET /v1/models/{id}: the router
	Sessions                // /sessions: the router
	Invocations             // POST /invocations: a worker, with SageMaker's session fields
	SageMaker               // POST /endpoints/{name}/...: the same in SageMaker's form
)

// Endpoint is a request's path, classified once.
type Endpoint struct {
	Role     Role
	Shape    Shape
	Stored   bool // it reads, deletes or cancels a stored response or a job, and names no model
	Adapters bool // it loads or unloads an adapter: a model of that name
	Job      bool // ID is a job's or a file's, if it is one at all: see jobPath
	Creates  bool // its answer may name a new job or file: see createsJob
	Sockets  bool // the handshake of a WebSocket goes to a worker

	Kind prompt.Kind
	Path string // in the one spelling by which it is judged and passed on
	ID   string // of the model, the session, the stored response or the job that the path names
}

// own lists what the router answers itself. A path that ends in a slash covers all paths below it, and the rest of
// the request's path is the ID.
var own = []struct {
	toRead bool // by GET and HEAD alone
	path   string
	role   Role
}{
	{toRead: true, path: "/v1/models", role: Models},
	{toRead: true, path: ofModel, role: Model},
	{path: "/sessions", role: Sessions},
	{path: "/sessions/", role: Sessions},
}

// outside lists the paths that vLLM serves outside of /v1, that go to a worker, and of whose bodies no prompt is
// read. Endpoints with a prompt are in the table of kinds in package prompt.
var outside = map[string]bool{"/detokenize": true, "/generative_scoring": true,
	"/tokenizer_info": true, "/v2/embed": true, "/cohere/v2/chat": true} // Cohere's API

// aliases are paths under which clients with another base URL look for an endpoint.
var aliases = map[string]string{"/completions": "/v1/completions", "/chat/completions": "/v1/chat/completions"}

const (
	invocations = "/invocations"
	ofModel     = "/v1/models/" // and a model's name
)

// Classify returns the endpoint of a path as it came. A new endpoint is one row of a table: of own if the router
// answers it, of prompt's kinds if a worker does and its body has a prompt, of outside if not. What is under /v1 and in
// no table goes to a worker: new endpoints of vLLM work before they are known here.
func Classify(method, path string) Endpoint {
	if method == "POST" {
		if e, ok := frequent[path]; ok {
			return e
		}
	}
	return classify(method, path)
}

// frequent are the endpoints of nearly all requests, classified ahead: some 2 % of a small request's time.
var frequent = map[string]Endpoint{}

func init() {
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
		"/v1/embeddings"} {
		frequent[path] = classify("POST", path)
	}
}

// classify is Classify without the paths that were classified ahead.
func classify(method, path string) Endpoint {
	if to, ok := aliases[path]; ok {
		path = to
	}
	e := Endpoint{Path: path, Shape: shapeOf(path)}
	_, _, aws := sagemaker.Path(path)
	switch {
	case aws && method != "POST", !aws && !isServed(method, path): // no worker knows SageMaker's own paths
		return e
	case reads(method) && strings.HasPrefix(path, ofModel):
		id, err := url.PathUnescape(path[len(ofModel):]) // clients send org/name with the slash encoded or not
		if err == nil {
			e.Role, e.ID = ofID(id), id
			return e
		}
	case aws, method == "POST" && path == invocations: // of aws the endpoint's name alone counts, and that is checked
		e.Role, e.Kind = SageMaker, prompt.KindOf(method, invocations)
		if path == invocations {
			e.Role = Invocations
		}
		return e
	}
	spelled, plain := plainPath(path)
	if !plain {
		e.Role = Malformed
		return e
	}
	if strings.HasPrefix(spelled, twice) { // no worker has such a path
		return e
	}
	e.Path = spelled
	e.Shape = shapeOf(spelled)
	e.Role = Worker
	e.Sockets = method == "GET" && sockets[spelled]
	e.Kind = prompt.KindOf(method, spelled)
	e.Adapters = strings.Contains(strings.ToLower(spelled), "lora_adapter")
	if role, id := ownRole(method, spelled); role != Nobody {
		if role == Model { // its /v1/models was encoded
			id, _ = url.PathUnescape(id)
			role = ofID(id)
		}
		e.Role, e.ID = role, id
		return e
	}
	e.ID, e.Stored = responseID(method, spelled), storedPath(method, spelled)
	if !e.Adapters && mayHaveJobs(spelled) {
		e.Creates = method == http.MethodPost
		e.ID, e.Stored = jobPath(method, spelled)
		e.Job = e.ID != ""
	}
	return e
}

// Computes reports whether an engine may compute a prompt for a request to it whose body is of that kind. One may for
// all that is not known here: what holds for a key's prompts holds at new endpoints of vLLM too.
func (e *Endpoint) Computes(method string, k prompt.Kind) bool {
	switch k {
	case prompt.CountTokens, prompt.Tokenize:
		return false
	case prompt.Other:
		return method == http.MethodPost && !e.Stored && !e.Adapters && e.Path != "/detokenize" &&
			!strings.HasSuffix(e.Path, "/render")
	}
	return true
}

// sockets are the paths whose WebSockets are passed on.
var sockets = map[string]bool{"/v1/realtime": true, "/v1/audio/speech/stream": true, "/v1/responses": true}

// media begin the paths whose bodies have files, sounds or pictures.
var media = []string{"/v1/audio/", "/v1/images/", "/v1/videos", "/v1/files", "/v1/uploads"}

// IsMedia reports whether how long a body is says nothing of its tokens.
func (e *Endpoint) IsMedia() bool {
	return slices.ContainsFunc(media, func(start string) bool { return strings.HasPrefix(e.Path, start) })
}

// Unloads reports whether it unloads an adapter.
func (e *Endpoint) Unloads() bool {
	return e.Adapters && strings.Contains(strings.ToLower(e.Path), "unload_lora_adapter")
}

// ofID returns the role of /v1/models/{id}. If id is empty, it is the role of the list, to which vLLM redirects.
func ofID(id string) Role {
	if id == "" {
		return Models
	}
	return Model
}

// isServed reports whether the router or a worker may answer at the path.
func isServed(method, path string) bool {
	if strings.HasPrefix(path, "/v1/") || outside[path] || prompt.KindOf("POST", path) != prompt.Other {
		return true
	}
	role, _ := ownRole(method, path)
	return role != Nobody
}

// ownRole returns the role of a path that the router answers itself, and the ID that the path names. It returns Nobody
// for any other.
func ownRole(method, path string) (role Role, id string) {
	for i := range own {
		o := &own[i]
		rest, begins := strings.CutPrefix(path, o.path)
		if begins && (rest == "" || strings.HasSuffix(o.path, "/")) && (!o.toRead || reads(method)) {
			return o.role, rest
		}
	}
	return Nobody, ""
}

// reads reports whether the method is GET, or HEAD: the same without the answer's body.
func reads(method string) bool { return method == "GET" || method == "HEAD" }

// shapeOf returns the shape of errors at a path.
func shapeOf(path string) Shape {
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		return Anthropic
	case strings.HasPrefix(path, "/v1/responses"):
		return Responses
	case strings.HasPrefix(path, "/endpoints/"):
		return AWS
	}
	return OpenAI
}

// responseID returns the id in the path of a stored response, as in /v1/responses/{id}/cancel. A POST to one segment is
// an endpoint beside the ids, as /v1/responses/compact.
func responseID(method, path string) string {
	id, ok := strings.CutPrefix(path, "/v1/responses/")
	if !ok {
		return ""
	}
	id, _, more := strings.Cut(id, "/")
	if method == "POST" && !more {
		return ""
	}
	return id
}

// storedPath reports whether the request reads, deletes or cancels a stored response, and so names no model.
func storedPath(method, path string) bool {
	rest, ok := strings.CutPrefix(path, "/v1/responses/")
	if !ok {
		return false
	}
	id, what, more := strings.Cut(rest, "/")
	for i := range len(id) {
		if !isWord(id[i]) {
			return false
		}
	}
	switch {
	case id == "":
		return false
	case !more:
		return method == "GET" || method == "DELETE"
	case what == "cancel":
		return method == "POST"
	}
	return what == "input_items" && method == "GET"
}
