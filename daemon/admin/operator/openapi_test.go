package operator

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/peers"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// failure is the body of an answer of 400 and above, if it has one.
type failure struct {
	Error  string `json:"error"`
	Oldest any    `json:"oldest,omitempty"` // decision in the ring
}

// operation is one route of the OpenAPI file.
type operation struct {
	route   string // method and path, in fiber's form
	says    string
	query   string // names of parameters, each with its description: "limit: how many; worker: of one only"
	takes   any    // a value of the body's type; a string is a type of bytes; nil = none
	answers any    // a value of the body's type with 200; a string is a type of text
	fails   string // statuses, beside 401 and 403, which all may have
}

const idOfDecision = "id: of the request, as X-Request-Id"

// operations lists all routes. TestOpenAPIHasEveryRoute compares them with the registered ones.
var operations = []operation{
	{route: "GET /", says: "The page, for a browser; else the list of routes", answers: map[string]string{}},
	{route: "GET /page/:file", says: "A file of the page", answers: "text/plain", fails: "404"},
	{route: "GET /health", says: "200 while the process runs", answers: "text/plain"},
	{route: "GET /ready", says: "Whether a pool can serve; 503, with the same body, when none can, and from SIGTERM on",
		answers: readyState{}},
	{route: "GET /metrics", says: "For Prometheus; docs/metrics.md lists them", answers: "text/plain"},
	{route: "GET /api/v1", says: "The list of routes", answers: map[string]string{}},
	{route: "GET /api/v1/openapi.json", says: "This file", answers: map[string]any{}},
	{route: "GET /api/v1/pools", says: "Pools and workers as they are now", answers: []PoolState{},
		query: "limit: how many workers, those in trouble first; offset: how many of these to skip; pool: of this one only; " +
			"find: in id, pool, state, reasons or labels, as role=decode; with: POOL WORKER, which is there in any case", fails: "400"},
	{route: "GET /api/v1/sessions", says: "Live sessions of each worker", answers: []PoolSessions{}, fails: "400",
		query: "worker: of this one only; limit: how many sessions to list, up to 10000"},
	{route: "GET /api/v1/overview", says: "All at one look: pools, demand, tiers and the last reload", answers: Overview{},
		query: "limit: how many workers, those in trouble first; offset: how many of these to skip; pool: of this one only; " +
			"find: in id, pool, state, reasons or labels, as role=decode; with: POOL WORKER, which is there in any case", fails: "400"},
	{route: "GET /api/v1/recent", says: "The last hour of each pool, in spans of half a minute", answers: []PoolHour{}},
	{route: "GET /api/v1/timeline", says: "The last hour as the page draws it, in the spans of /api/v1/recent: requests and load " +
		"of all pools together, and what happened", answers: LastHour{}, fails: "404",
		query: "pool: of this one only; curves: 1 = with the last hour of each worker; with: POOL WORKER, of this one only"},
	{route: "GET /api/v1/keys", says: "Requests, refusals and tokens by the client's key, since the start",
		answers: []metrics.KeyState{}},
	{route: "GET /api/v1/config", says: "The configuration in force, without its secrets", answers: map[string]any{}},
	{route: "POST /api/v1/reload", says: "Read the configuration's file again; 422: the one in force stays",
		answers: metrics.Reload{}, fails: "422"},
	{route: "POST /api/v1/upgrade", says: "Start the binary at this process's path, hand it the sockets, and drain; 409: " +
		"this process goes on", query: "timeout: for the new process to serve, as 90s", answers: upgraded{}, fails: "400 409"},
	{route: "POST /api/v1/pools/:pool/each", says: "Send an order of vLLM's to each worker of a pool, the body with it; 502, " +
		"with the same answer: some worker did not obey. With a token only", fails: "400 403 404 502", answers: Ordered{},
		query: "pool: its name; path: /pause, /resume, /sleep, /wake_up, /reset_prefix_cache, /update_weights, and others that " +
			"a refusal names, with a query of its own, or several of them, sent one after the other; timeout: for the workers " +
			"to answer, as 90s, up to 10m; at_most_down: the share of the workers that have the order at a time, as 0.25; parallel: likewise their number"},
	{route: "POST /api/v1/pools/:pool/workers", says: "Register a worker, or renew its registration, with url and the other keys of " +
		"[[pools.workers]], and ttl. 409: another worker is in the way, or it is registered otherwise; 507: there are as many as " +
		"may be. With a token only", takes: map[string]any{}, answers: PoolWorker{}, fails: "400 403 404 409 500 503 507"},
	{route: "GET /api/v1/pools/:pool/workers", says: "The workers of a pool with their urls, and where each comes from",
		answers: []PoolWorker{}, fails: "404"},
	{route: "DELETE /api/v1/pools/:pool/workers/:worker", says: "End a registration: the worker's requests run to their end. " +
		"With a token only", answers: deregistered{}, fails: "403 404 409 500 503"},
	{route: "POST /workers", says: "Register a worker, as SGLang's gateway has it", takes: map[string]any{}, answers: sglangDone{},
		query: "pool: its name; needed if there are several", fails: "400 403 404 409 500 503 507"},
	{route: "GET /workers", says: "The workers, as SGLang's gateway lists them", answers: sglangWorkers{}, query: "pool: of this one only"},
	{route: "DELETE /workers/:worker", says: "End a registration, by id or by URL", answers: sglangDone{}, fails: "403 404 409 500 503",
		query: "pool: of this one only"},
	{route: "POST /add_worker", says: "Register a worker, as SGLang's router had it up to 0.2.1, and slime's has it",
		query: "url: of the worker; pool: its name; needed if there are several", answers: sglangDone{},
		fails: "400 403 404 409 500 503 507"},
	{route: "POST /remove_worker", says: "End a registration, likewise", answers: sglangDone{}, fails: "403 404 409 500 503",
		query: "url: of the worker; pool: of this one only"},
	{route: "GET /list_workers", says: "The URLs of the workers, likewise", answers: sglangURLs{}},
	{route: "POST /api/v1/whatif", says: "Where a request would go, by each strategy, without sending it",
		takes: strategies.Question{}, answers: strategies.Answer{}, fails: "400"},
	{route: "GET /api/v1/shadows", says: "What each pool's shadows saw, beside the strategy that served",
		answers: []PoolShadows{}},
	{route: "GET /api/v1/decisions", says: "The last requests, who served them and why. With Accept: text/event-stream " +
		"those to come: an event \"decisions\" holds a list of them, and how many older ones were left out",
		query: "pool: of this one only; worker: that answered; model: as the client called it; key: name of the client's " +
			"key; slower: than this, as 2s; open: 1 = only those under way; " +
			"failed: 1 = only those that did not end well; limit: how many, up to 1000",
		answers: []decisions.Decision{}, fails: "400 503"},
	{route: "GET /api/v1/decisions/:id", says: "Why a request went where it went", answers: decisions.Decision{},
		query: idOfDecision, fails: "404"},
	{route: "GET /api/v1/cache", says: "The workers' KV cache: tiers, and tokens that it has room for",
		query: "prefix: count the keys that begin so", answers: CacheState{}, fails: "400"},
	{route: "GET /api/v1/cache/keys", says: "Its keys in order, a page", answers: CacheKeys{}, fails: "400",
		query: "prefix: of the keys; after: next of the page before; limit: how many, up to 1000"},
	{route: "DELETE /api/v1/cache/keys", says: "Delete a key, or up to 5000 that begin so", answers: CacheDeleted{},
		query: "key: the one; prefix: of all that are to go; after: next of the call before", fails: "400 502"},
	{route: "GET /api/v1/cache/value", says: "The bytes of a key", query: "key: the one", fails: "400 404",
		answers: "application/octet-stream"},
	{route: "GET /api/v1/routers", says: "Other routers that share the history", answers: peers.Stats{}},
	{route: "GET /api/v1/lmcache", says: "LMCache's instances", answers: lmcacheState{}},
	{route: "GET /api/v1/strategies", says: "The strategies that there are, each with its SHA-256 and whom it serves",
		answers: []strategies.Strategy{}},
	{route: "PUT /api/v1/strategies/:name", says: "Bring a module into server.strategies_dir; it serves at once where its " +
		"name is configured. 422: it cannot serve, and why; 409: another stands there than If-Match says, or the configuration " +
		"is in the way; 403: there is no token, which this needs on loopback too", takes: "application/wasm",
		answers: strategies.Delivered{}, fails: "400 403 409 413 422 500",
		query: "If-Match: SHA-256 of the module in whose place it is to come"},
	{route: "DELETE /api/v1/strategies/:name", says: "Remove a module that serves nobody", answers: removed{},
		fails: "403 404 409 500"},
	{route: "PUT /api/v1/pools/:pool/strategy", says: "Have a strategy serve in the place of the one that the file names, " +
		"over reloads and restarts too; it ends when the file comes to name another", takes: activation{},
		answers: strategies.Strategy{}, fails: "400 403 404 409 422 500"},
	{route: "DELETE /api/v1/pools/:pool/strategy", says: "Have the strategy serve that the file names",
		answers: strategies.Strategy{}, fails: "403 404 409 500"},
	{route: "POST /api/v1/pools/:pool/workers/:worker/drain", says: "Take a worker out: its requests run to their end",
		query: "rank: one of its data-parallel ranks", answers: drainState{}, fails: "404"},
	{route: "DELETE /api/v1/pools/:pool/workers/:worker/drain", says: "Put it back",
		query: "rank: one of its data-parallel ranks", answers: drainState{}, fails: "404"},
}

const openAPIFile = "openapi.json"

// TestOpenAPIHasEveryRoute: the file has all registered routes except the profiles, which are no API.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	s := &Server{c: Config{Metrics: metrics.NewMetrics("test"), Process: serving{}}, token: bearer{file: "token"}}
	registered, told := map[string]bool{}, map[string]bool{}
	for _, r := range s.newApp(s.c).GetRoutes(true) {
		if r.Method != "HEAD" { // fiber makes one of each GET
			registered[r.Method+" "+r.Path] = true
		}
	}
	for _, o := range operations {
		told[o.route] = true
		if !registered[o.route] {
			t.Errorf("%s is told, and not registered", o.route)
		}
	}
	for r := range registered {
		if !told[r] {
			t.Errorf("%s is registered: give it a row in operations, then go test ./daemon/admin/operator -run OpenAPI -update", r)
		}
	}
}

// TestOpenAPIFile: openapi.json is made of operations and of the types of the answers. To write it anew: go test
// ./daemon/admin/operator -run OpenAPI -update.
func TestOpenAPIFile(t *testing.T) {
	want := writeOpenAPI(t)
	if *update {
		if err := os.WriteFile(openAPIFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(openAPIFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("openapi.json is not what the routes answer (%v): go test ./daemon/admin/operator -run OpenAPI -update", err)
	}
	if to, err := filepath.EvalSymlinks("../../../docs/" + openAPIFile); err != nil || filepath.Base(filepath.Dir(to)) != "operator" {
		t.Errorf("docs/openapi.json leads to %s (%v)", to, err)
	}
}

type object = map[string]any

var parameter = regexp.MustCompile(`:(\w+)`)

// writeOpenAPI makes the file.
func writeOpenAPI(t *testing.T) []byte {
	t.Helper()
	s := newSchemas(t)
	paths := object{}
	for _, o := range operations {
		method, path, _ := strings.Cut(o.route, " ")
		name := parameter.ReplaceAllString(path, "{$1}")
		if paths[name] == nil {
			paths[name] = object{}
		}
		paths[name].(object)[strings.ToLower(method)] = s.operation(&o, path)
	}
	bad := s.of(reflect.TypeFor[failure]())
	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{"title": "warmpath: the operator's API", "version": "v1", "description": "What server.admin serves. " +
			"New fields may come; none goes. With server.admin_token_file every path but /, /page, /health and /ready " +
			"needs the token."},
		"servers":  []object{{"url": "http://127.0.0.1:9090"}},
		"security": []object{{"token": []string{}}, {}},
		"paths":    paths,
		"components": object{"schemas": s.all,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"responses": object{"failure": object{"description": "What is wrong, and what to do",
				"content": object{"application/json": object{"schema": bad}}}}},
	}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// operation writes a route.
func (s *schemas) operation(o *operation, path string) object {
	said := map[string]string{}
	var order []string
	for part := range strings.SplitSeq(o.query, "; ") {
		if name, what, ok := strings.Cut(part, ": "); ok {
			said[name] = what
			order = append(order, name)
		}
	}
	parameters := []object{}
	add := func(name, in string) {
		p := object{"name": name, "in": in, "schema": object{"type": "string"}}
		if in == "path" {
			p["required"] = true
		}
		if said[name] != "" {
			p["description"] = said[name]
		}
		parameters = append(parameters, p)
	}
	for _, m := range parameter.FindAllStringSubmatch(path, -1) {
		add(m[1], "path")
		order = slices.DeleteFunc(order, func(name string) bool { return name == m[1] })
	}
	for _, name := range order {
		if name == "If-Match" {
			add(name, "header")
			continue
		}
		add(name, "query")
	}
	kind, body := "application/json", object{}
	if text, ok := o.answers.(string); ok {
		kind = text
	} else {
		body = s.of(reflect.TypeOf(o.answers))
	}
	responses := object{"200": object{"description": "OK", "content": object{kind: object{"schema": body}}}}
	for _, status := range strings.Fields(o.fails) {
		responses[status] = object{"$ref": "#/components/responses/failure"}
	}
	if path == "/ready" {
		responses["503"] = responses["200"]
	}
	out := object{"summary": o.says, "parameters": parameters, "responses": responses,
		"operationId": strings.Trim(regexp.MustCompile(`\W+`).ReplaceAllString(o.route, "_"), "_")}
	if kind, ok := o.takes.(string); ok {
		out["requestBody"] = object{"required": true, "content": object{kind: object{}}}
	} else if o.takes != nil {
		out["requestBody"] = object{"required": true,
			"content": object{"application/json": object{"schema": s.of(reflect.TypeOf(o.takes))}}}
	}
	return out
}

// TestOpenAPISchemas compares schemas with what encoding/json writes.
func TestOpenAPISchemas(t *testing.T) {
	f := func(of any, want string) {
		t.Helper()
		s := newSchemas(t)
		if got, err := json.Marshal(s.of(reflect.TypeOf(of))); err != nil || string(got) != want {
			t.Errorf("%T: %s (%v); want %s", of, got, err, want)
		}
	}
	f(1, `{"type":"integer"}`)
	f(1.5, `{"type":"number"}`)
	f(true, `{"type":"boolean"}`)
	f("", `{"type":"string"}`)
	f([]byte{}, `{"contentEncoding":"base64","type":"string"}`)
	f([]string{}, `{"items":{"type":"string"},"type":["array","null"]}`)
	f(map[string]int{}, `{"additionalProperties":{"type":"integer"},"type":["object","null"]}`)
	f(metrics.Reload{}, `{"$ref":"#/components/schemas/Reload"}`)
	f(fmt.Errorf, `{}`)
}
