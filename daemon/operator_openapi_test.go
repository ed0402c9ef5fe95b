package daemon

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// apiFile is what the test reads of an OpenAPI file.
type apiFile struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Ref     string `json:"$ref"`
			Content map[string]struct{ Schema schema }
		}
	}
	Components struct {
		Schemas   map[string]schema
		Responses map[string]struct {
			Content map[string]struct{ Schema schema }
		}
	}
}

// schema is what these files use of JSON Schema.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Properties map[string]schema
	Required   []string
	Items      *schema
	Values     *schema `json:"additionalProperties"`
}

// misfits lists where a value is not as a schema says. A field that no schema names is a misfit.
func (f *apiFile) misfits(at string, s schema, v any) (bad []string) {
	if s.Ref != "" {
		name := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		if _, ok := f.Components.Schemas[name]; !ok {
			return []string{at + ": there is no schema " + name}
		}
		s = f.Components.Schemas[name]
	}
	kind, whole := "null", false
	switch v := v.(type) {
	case bool:
		kind = "boolean"
	case string:
		kind = "string"
	case float64:
		kind, whole = "number", v == math.Trunc(v)
	case []any:
		kind = "array"
		for i, one := range v {
			if s.Items != nil {
				bad = append(bad, f.misfits(fmt.Sprintf("%s[%d]", at, i), *s.Items, one)...)
			}
		}
	case map[string]any:
		kind = "object"
		for name, one := range v {
			if of, ok := s.Properties[name]; ok {
				bad = append(bad, f.misfits(at+"."+name, of, one)...)
			} else if s.Values != nil {
				bad = append(bad, f.misfits(at+"."+name, *s.Values, one)...)
			} else if s.Properties != nil {
				bad = append(bad, at+"."+name+" is in no schema")
			}
		}
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				bad = append(bad, at+"."+name+" is missing")
			}
		}
	}
	types, _ := s.Type.([]any)
	if one, ok := s.Type.(string); ok {
		types = []any{one}
	}
	if types != nil && !slices.Contains(types, any(kind)) && !(whole && slices.Contains(types, any("integer"))) {
		bad = append(bad, fmt.Sprintf("%s is a %s, not a %v", at, kind, s.Type))
	}
	return bad
}

// asked are the requests of the test, by operation: what is to stand in the path, after it, and in the body, and the
// status where it is not 200.
var asked = map[string]struct {
	path, body string
	status     int
}{
	"get /page/{file}":                                   {path: "/page/page.js"},
	"get /api/v1/decisions/{id}":                         {path: "/api/v1/decisions/request-1"},
	"get /api/v1/cache":                                  {path: "/api/v1/cache?prefix="},
	"get /api/v1/cache/value":                            {path: "/api/v1/cache/value?key=resp/0/none", status: 404},
	"delete /api/v1/cache/keys":                          {path: "/api/v1/cache/keys?prefix="},
	"post /api/v1/upgrade":                               {path: "/api/v1/upgrade?timeout=never", status: 400},
	"post /api/v1/whatif":                                {body: `{"body":{"model":"sim","prompt":"hello","max_tokens":1}}`},
	"post /api/v1/pools/{pool}/each":                     {path: "/api/v1/pools/main/each?path=/pause", status: 403},
	"put /api/v1/strategies/{name}":                      {path: "/api/v1/strategies/mine", status: 403},
	"delete /api/v1/strategies/{name}":                   {path: "/api/v1/strategies/mine", status: 403},
	"put /api/v1/pools/{pool}/strategy":                  {path: "/api/v1/pools/main/strategy", status: 403},
	"delete /api/v1/pools/{pool}/strategy":               {path: "/api/v1/pools/main/strategy", status: 403},
	"get /api/v1/pools/{pool}/workers":                   {path: "/api/v1/pools/main/workers"},
	"post /api/v1/pools/{pool}/workers":                  {path: "/api/v1/pools/main/workers", status: 403},
	"delete /api/v1/pools/{pool}/workers/{worker}":       {path: "/api/v1/pools/main/workers/w1", status: 403},
	"post /workers":                                      {status: 403},
	"delete /workers/{worker}":                           {path: "/workers/w1", status: 403},
	"post /add_worker":                                   {status: 403},
	"post /remove_worker":                                {status: 403},
	"post /api/v1/pools/{pool}/workers/{worker}/drain":   {path: "/api/v1/pools/main/workers/w1/drain"},
	"delete /api/v1/pools/{pool}/workers/{worker}/drain": {path: "/api/v1/pools/main/workers/w1/drain"},
}

// TestTheAPIIsAsItsFileSays: every operation of /api/v1/openapi.json answers as the file says, on a daemon that has
// served, with every field in a schema and every required field there.
func TestTheAPIIsAsItsFileSays(t *testing.T) {
	t.Parallel()
	r := start(t, bindAlways+settings("prefixaware", append(sims(t, 2, vllmsim.Config{}).URLs(), "http://127.0.0.1:1")...)+`
[[pools.shadow]]
strategy = "roundrobin"
[kv_cache]
resp = '127.0.0.1:0'
max_bytes = 33554432
`, 2)
	for i := range 3 {
		if s := r.do("POST", "/v1/chat/completions", chatBody(false, []chatMessage{{"user", strings.Repeat("words ", 200)}}), "X-Request-Id",
			fmt.Sprint("request-", i), "X-Session-Id", "someone"); s.status != 200 {
			t.Fatalf("%d %s", s.status, s.body)
		}
	}
	admin := "http://" + r.AdminAddr()
	var f apiFile
	if s := do(t, "GET", admin+"/api/v1/openapi.json", ""); s.status != 200 || json.Unmarshal([]byte(s.body), &f) != nil || len(f.Paths) == 0 {
		t.Fatalf("%d %.200s", s.status, s.body)
	}
	for path, operations := range f.Paths {
		for method := range operations {
			r.holdToFile(&f, method, path)
		}
	}
	for operation := range asked {
		method, path, _ := strings.Cut(operation, " ")
		if _, ok := f.Paths[path][method]; !ok {
			t.Errorf("the file has no %s", operation)
		}
	}
}

// holdToFile asks for one operation.
func (r *running) holdToFile(f *apiFile, method, path string) {
	r.t.Helper()
	ask := asked[method+" "+path]
	if ask.path == "" {
		ask.path = path
	}
	if ask.status == 0 {
		ask.status = 200
	}
	s := do(r.t, strings.ToUpper(method), "http://"+r.AdminAddr()+ask.path, ask.body)
	said, ok := f.Paths[path][method].Responses[fmt.Sprint(ask.status)]
	if s.err != nil || s.status != ask.status || !ok {
		r.t.Errorf("%s %s: %d %.200s (%v); want %d, which is in the file: %v", method, ask.path, s.status, s.body, s.err, ask.status, ok)
		return
	}
	content := said.Content
	if said.Ref != "" {
		content = f.Components.Responses[strings.TrimPrefix(said.Ref, "#/components/responses/")].Content
	}
	of, ok := content["application/json"]
	if !ok {
		return
	}
	var v any
	if err := json.Unmarshal([]byte(s.body), &v); err != nil {
		r.t.Errorf("%s %s: %v: %.200s", method, ask.path, err, s.body)
		return
	}
	if bad := f.misfits("", of.Schema, v); len(bad) > 0 {
		slices.Sort(bad)
		r.t.Errorf("%s %s: %s", method, ask.path, strings.Join(bad[:min(9, len(bad))], "; "))
	}
}

// TestMisfitsAreSeen: the test above can fail.
func TestMisfitsAreSeen(t *testing.T) {
	var f apiFile
	if err := json.Unmarshal([]byte(`{"components":{"schemas":{"A":{"type":"object","required":["n"],"properties":{
		"n":{"type":"integer"},"l":{"type":["array","null"],"items":{"type":"string"}}}}}}}`), &f); err != nil {
		t.Fatal(err)
	}
	g := func(text, want string) {
		t.Helper()
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.misfits("", schema{Ref: "#/components/schemas/A"}, v), "; "); got != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
	g(`{"n":1,"l":null}`, "")
	g(`{"n":1,"l":["a"]}`, "")
	g(`{"l":[]}`, ".n is missing")
	g(`{"n":1.5}`, ".n is a number, not a integer")
	g(`{"n":1,"l":[2]}`, ".l[0] is a number, not a string")
	g(`{"n":1,"x":2}`, ".x is in no schema")
	g(`[]`, " is a array, not a object")
}
