package operator

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/lmcache"
	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
	"github.com/warmpath/warmpath/host"
)

// schemas makes JSON schemas of Go types, with the comments of their fields as descriptions.
type schemas struct {
	all  object                       // by name
	from map[string]reflect.Type      // the type with a name
	said map[string]map[string]string // comments, by folder: of "Type" and of "Type.Field"
	t    *testing.T
}

func newSchemas(t *testing.T) *schemas {
	return &schemas{all: object{}, from: map[string]reflect.Type{}, said: map[string]map[string]string{}, t: t}
}

// usage has the fields that route.Usage writes.
type usage struct {
	Prompt int `json:"prompt_tokens,omitempty"`
	Output int `json:"output_tokens,omitempty"`
	Cached int `json:"cached_tokens,omitempty"`
}

// of returns a type's schema. The schemas of structs are in all.
func (s *schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return object{}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case reflect.TypeFor[record.Usage]():
		t = reflect.TypeFor[usage]()
	}
	if t.Kind() == reflect.Pointer {
		return s.of(t.Elem())
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		s.t.Errorf("%s writes itself: say in schemas.of what", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	}
	return object{} // anything
}

// schemaNames are the names of the schemas of other packages' types.
var schemaNames = map[reflect.Type]string{
	reflect.TypeFor[certificate.Stats]():     "CertificateState",
	reflect.TypeFor[chunks.Estimate]():       "CacheTokens",
	reflect.TypeFor[chunks.Model]():          "CacheModel",
	reflect.TypeFor[decisions.Stats]():       "KeptDecisions",
	reflect.TypeFor[host.Stats]():            "StrategyState",
	reflect.TypeFor[kvcache.Entry]():         "CacheKey",
	reflect.TypeFor[lmcache.InstanceStats](): "LmcacheInstance",
	reflect.TypeFor[peers.PoolStats]():       "PoolRouters",
	reflect.TypeFor[peers.Progress]():        "RouterReplay",
	reflect.TypeFor[peers.Router]():          "RouterState",
	reflect.TypeFor[peers.Stats]():           "RoutersState",
	reflect.TypeFor[peers.Traffic]():         "RouterTraffic",
	reflect.TypeFor[queue.FlowCount]():       "FlowState",
	reflect.TypeFor[session.Entry]():         "SessionState",
	reflect.TypeFor[waiting.State]():         "QueueState",
}

// named adds a struct's schema to all, and returns the reference to it.
func (s *schemas) named(t reflect.Type) object {
	name := cmp.Or(schemaNames[t], strings.ToUpper(t.Name()[:1])+t.Name()[1:])
	ref := object{"$ref": "#/components/schemas/" + name}
	if s.all[name] != nil {
		if s.from[name] != t {
			s.t.Errorf("%s and %s would have the same schema: give one another name", s.from[name], t)
		}
		return ref
	}
	s.from[name] = t
	out := object{"type": "object"}
	s.all[name] = out
	properties, required := object{}, []string{}
	s.fields(t, properties, &required)
	out["properties"], out["required"] = properties, required
	if text := s.comment(t, ""); text != "" {
		if schemaNames[t] != "" {
			text = name + strings.TrimPrefix(text, t.Name())
		}
		out["description"] = text
	}
	return ref
}

// fields adds the fields of a struct, and of those that are embedded in it.
func (s *schemas) fields(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		switch {
		case f.Anonymous && tag == "":
			if f.Type.Kind() == reflect.Pointer { // none of its fields may be there
				s.fields(f.Type.Elem(), properties, new([]string))
			} else {
				s.fields(f.Type, properties, required)
			}
			continue
		case !f.IsExported() || tag == "-":
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" {
			name = f.Name
		}
		one := s.of(f.Type)
		if text := s.comment(t, "."+f.Name); text != "" {
			one["description"] = text
		}
		properties[name] = one
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// comment returns the comment of a type in the source, or with a field's name that of the field.
func (s *schemas) comment(t reflect.Type, field string) string {
	folder, ours := strings.CutPrefix(t.PkgPath(), "github.com/warmpath/warmpath/")
	if !ours {
		return ""
	}
	if s.said[folder] == nil {
		s.said[folder] = s.read(filepath.Join("../../..", folder))
	}
	return s.said[folder][t.Name()+field]
}

// read collects the comments of a folder's structs and of their fields.
func (s *schemas) read(folder string) map[string]string {
	said := map[string]string{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		s.t.Fatalf("no source in %s (%v)", folder, err)
	}
	words := func(g *ast.CommentGroup) string { return strings.Join(strings.Fields(g.Text()), " ") }
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			spec := g.Specs[0].(*ast.TypeSpec)
			said[spec.Name.Name] = words(g.Doc)
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					for _, n := range field.Names {
						said[spec.Name.Name+"."+n.Name] = strings.TrimSpace(words(field.Doc) + " " + words(field.Comment))
					}
				}
			}
		}
	}
	return said
}
