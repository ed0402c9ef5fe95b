package conf

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Changes lists what differs between two configurations as a person would look for it in the file: keys by their path, pools,
// workers, keys and strategies by their names, and the files beside it whose contents are others. Values are not shown: some
// are secret.
func Changes(before, after *Config) []string {
	var c changes
	c.walk("", reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
	for _, path := range after.WatchedFiles() {
		if was, known := before.sums[path]; known && was != after.sums[path] {
			c = append(c, "contents of "+path)
		}
	}
	return c
}

// changes gathers the paths of keys.
type changes []string

func (c *changes) walk(path string, a, b reflect.Value) {
	switch {
	case a.Kind() == reflect.Struct:
		for f := range a.Type().Fields() {
			if tag := f.Tag.Get("toml"); tag != "-" {
				c.walk(strings.TrimPrefix(path+"."+tag, "."), a.FieldByIndex(f.Index), b.FieldByIndex(f.Index))
			}
		}
	case a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Struct:
		c.tables(path, a, b)
	case a.Kind() == reflect.Map && a.Type().Elem().Kind() == reflect.Struct:
		for _, k := range keysOfMaps(a, b) {
			c.pair(path+"."+k, a.MapIndex(reflect.ValueOf(k)), b.MapIndex(reflect.ValueOf(k)))
		}
	case a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0, a.Kind() == reflect.Map && a.Len() == 0 && b.Len() == 0:
	case !reflect.DeepEqual(a.Interface(), b.Interface()):
		*c = append(*c, path)
	}
}

// pair compares what may be on one side only.
func (c *changes) pair(path string, a, b reflect.Value) {
	switch {
	case !a.IsValid():
		*c = append(*c, path+" (new)")
	case !b.IsValid():
		*c = append(*c, path+" (gone)")
	default:
		c.walk(path, a, b)
	}
}

// tables compares arrays of tables by the names of their elements. Their order counts: the first pool that fits serves.
func (c *changes) tables(path string, a, b reflect.Value) {
	names := func(v reflect.Value) (list []string) {
		for i := range v.Len() {
			list = append(list, nameOf(v.Index(i)))
		}
		return list
	}
	was, is := names(a), names(b)
	at := func(v reflect.Value, in []string, name string) reflect.Value {
		if i := slices.Index(in, name); i >= 0 {
			return v.Index(i)
		}
		return reflect.Value{}
	}
	seen := map[string]bool{}
	for _, name := range slices.Concat(was, is) {
		if !seen[name] {
			seen[name] = true
			c.pair(path+"."+name, at(a, was, name), at(b, is, name))
		}
	}
	both := func(list []string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(n string) bool { return !slices.Contains(was, n) || !slices.Contains(is, n) })
	}
	if !slices.Equal(both(was), both(is)) {
		*c = append(*c, path+" (order)")
	}
}

// nameOf is what a table is called in the file.
func nameOf(v reflect.Value) string {
	for _, field := range []string{"Name", "ID"} {
		if f := v.FieldByName(field); f.IsValid() {
			return f.String()
		}
	}
	panic(fmt.Sprintf("BUG: %s has no name", v.Type()))
}

func keysOfMaps(a, b reflect.Value) []string {
	var keys []string
	for _, k := range slices.Concat(a.MapKeys(), b.MapKeys()) {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// readSums notes what stands in the files beside the configuration, for Changes.
func (c *Config) readSums() {
	c.sums = map[string]sum{}
	for _, path := range c.WatchedFiles() {
		c.sums[path], _ = fileSum(path) // one that cannot be read is found by whoever needs it
	}
}
