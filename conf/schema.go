package conf

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

var durationType = reflect.TypeFor[time.Duration]()

// schema holds the parsed tree v against the Go type t: unknown keys and wrong types, all of them, with their lines.
// The library's own decoder stops at the first wrong type and passes over unknown keys. It returns false if decoding
// would fail.
func (r *report) schema(path string, v any, t reflect.Type) bool {
	if readsItself(t) {
		return r.parsed(path, reflect.New(t).Interface().(toml.Unmarshaler).UnmarshalTOML(v))
	}
	switch t.Kind() {
	case reflect.Struct:
		return r.table(path, v, t)
	case reflect.Map:
		return r.dict(path, v, t.Elem())
	case reflect.Slice:
		return r.array(path, v, t.Elem())
	}
	what := mismatch(v, t)
	if what == "" {
		r.tooLong(path, v, t)
		return true
	}
	r.add(path, fmt.Sprintf("%s is no %s", show(path, v), what), remedyOf(path, v, what))
	return false
}

// maxTime bounds every duration. A moment that is centuries away has no number of nanoseconds, and would be past.
const maxTime = 10 * 365 * 24 * time.Hour

// tooLong reports a duration above maxTime.
func (r *report) tooLong(path string, v any, t reflect.Type) {
	if t != durationType {
		return
	}
	text, _ := v.(string)
	if d, err := time.ParseDuration(text); err == nil && d > maxTime {
		r.add(path, fmt.Sprintf("%s is too long", text), `write ten years at most, "87600h"`)
	}
}

// readsItself reports whether a type parses its own values, whatever fields it has.
func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[toml.Unmarshaler]())
}

// parsed reports the error of a type that reads its own values.
func (r *report) parsed(path string, err error) bool {
	if f, ok := errors.AsType[*fault](err); ok {
		r.add(path, f.what, f.remedy)
	}
	return err == nil
}

// table checks the keys of a struct.
func (r *report) table(path string, v any, t reflect.Type) bool {
	m, ok := v.(map[string]any)
	if !ok {
		r.add(path, show(path, v)+" is no table", "write "+tableFor(path, v, t))
		return false
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		f, known := field(t, k)
		if !known {
			r.add(child(path, k), "unknown key", remedyFor(k, keysOf(t)))
			continue
		}
		ok = r.schema(child(path, k), m[k], f.Type) && ok
	}
	return ok
}

// index is the place of an element in a list.
var index = regexp.MustCompile(`\[\d+\]`)

// tableFor shows how to write the table that v should be. A text in a list is taken for the value of the table's first
// key.
func tableFor(path string, v any, t reflect.Type) string {
	if !strings.HasSuffix(path, "]") {
		return "{ key = value } or a [table]"
	}
	example := "{ key = value }"
	if said := show(path, v); strings.HasPrefix(said, `"`) {
		example = fmt.Sprintf("{ %s = %s }", keysOf(t)[0], said)
	}
	return example + ", or its keys below [[" + index.ReplaceAllString(path, "") + "]]"
}

// listFor shows how to write the list of t that v should be.
func listFor(path string, v any, t reflect.Type) string {
	said := show(path, v)
	plain := strings.HasPrefix(said, `"`) || isNumber(v)
	switch {
	case t.Kind() == reflect.Struct && plain:
		return fmt.Sprintf("%s = [{ %s = %s }]", path[strings.LastIndexByte(path, '.')+1:], keysOf(t)[0], said)
	case t.Kind() == reflect.Struct:
		return "[[" + index.ReplaceAllString(path, "") + "]] with two brackets"
	case t.Kind() == reflect.Int:
		return "the least and the greatest, as [-100, " + said + "]"
	case plain:
		return "[" + said + "]"
	}
	return "[ ... ]"
}

// dict checks a table with names of the user's own: strategies and options.
func (r *report) dict(path string, v any, t reflect.Type) bool {
	m, ok := v.(map[string]any)
	if !ok {
		r.add(path, show(path, v)+" is no table", "write { key = value }")
		return false
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		ok = r.schema(child(path, k), m[k], t) && ok
	}
	return ok
}

// array checks the elements of an array, or of an array of tables.
func (r *report) array(path string, v any, t reflect.Type) bool {
	items := reflect.ValueOf(v)
	if items.Kind() != reflect.Slice {
		r.add(path, show(path, v)+" is no list", "write "+listFor(path, v, t))
		return false
	}
	ok := true
	for i := range items.Len() {
		ok = r.schema(elem(path, i), items.Index(i).Interface(), t) && ok
	}
	return ok
}

// mismatch names the kind that t wants and v is not, or "".
func mismatch(v any, t reflect.Type) string {
	ok := false
	what := ""
	switch {
	case t == durationType:
		what = "duration"
		if s, isText := v.(string); isText {
			_, err := time.ParseDuration(s)
			ok = err == nil
		}
	case t.Kind() == reflect.String:
		what = "text"
		_, ok = v.(string)
	case t.Kind() == reflect.Bool:
		what = "true or false"
		_, ok = v.(bool)
	case t.Kind() == reflect.Float64:
		what = "number"
		ok = isNumber(v)
	case t.Kind() == reflect.Interface:
		what = "text, number or true/false"
		_, isText := v.(string)
		_, isBool := v.(bool)
		ok = isText || isBool || isNumber(v)
	default:
		what = "whole number"
		_, ok = v.(int64)
	}
	if ok {
		return ""
	}
	return what
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

// show names a value in an error, short. What stands under keys in the wrong place may be a key itself: it is not
// shown, unless it is too short for one.
func show(path string, v any) string {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(path, "keys") && len(v) >= minClientKey {
			return "this text"
		}
		return fmt.Sprintf("%.40q", v)
	case int64, float64, bool:
		return fmt.Sprint(v)
	case map[string]any:
		return "a table"
	case time.Time:
		return "a date"
	}
	return "a list"
}

// field finds the field with that TOML key.
func field(t reflect.Type, key string) (reflect.StructField, bool) {
	for f := range t.Fields() {
		if tag := f.Tag.Get("toml"); tag == key && tag != "-" {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// keysOf lists the TOML keys of a struct.
func keysOf(t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		if tag := f.Tag.Get("toml"); tag != "-" {
			keys = append(keys, tag)
		}
	}
	return keys
}
