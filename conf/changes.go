package conf

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Changes lists the differences between two configurations: keys by their path, pools, workers, keys and strategies by
// their names, and the files that the configuration names and whose contents have changed. It shows no values: some are
// secret.
func Changes(before, after *Config) []string {
	list := differences(before, after).paths(func(difference) bool { return true })
	for _, path := range after.WatchedFiles() {
		if was, known := before.sums[path]; known && was != after.sums[path] {
			list = append(list, "contents of "+path)
		}
	}
	return list
}

// NeedRestart lists the keys among the changes that a running process does not take up. Their fields have a tag,
// reload:"restart".
func NeedRestart(before, after *Config) []string {
	return differences(before, after).paths(func(d difference) bool { return d.restart })
}

// InForce returns what a process goes by that was started with one configuration and has taken up another since: the
// keys of reload:"restart" are those of the start.
func InForce(started, now *Config) *Config {
	both := *now
	keepStart(reflect.ValueOf(&both).Elem(), reflect.ValueOf(started).Elem())
	return &both
}

// keepStart sets the fields of reload:"restart" in a table, and in the tables within it, to those of the start. No
// array and no map of tables has such fields, because its tables may differ from those of the start.
func keepStart(now, started reflect.Value) {
	for f := range now.Type().Fields() {
		switch {
		case f.Tag.Get("reload") == "restart":
			now.FieldByIndex(f.Index).Set(started.FieldByIndex(f.Index))
		case f.Type.Kind() == reflect.Struct && f.IsExported():
			keepStart(now.FieldByIndex(f.Index), started.FieldByIndex(f.Index))
		}
	}
}

// difference is one key that two configurations have different values of.
type difference struct {
	path    string
	restart bool // the value of the start stays in force
}

// comparison gathers differences in the order of the fields.
type comparison []difference

func differences(before, after *Config) comparison {
	var c comparison
	c.walk(difference{}, reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem())
	return c
}

func (c comparison) paths(wanted func(difference) bool) (list []string) {
	for _, d := range c {
		if wanted(d) {
			list = append(list, d.path)
		}
	}
	return list
}

// walk adds what differs between the values a and b, whose place is at.
func (c *comparison) walk(at difference, a, b reflect.Value) {
	switch {
	case readsItself(a.Type()):
		c.values(at, a, b)
	case a.Kind() == reflect.Struct:
		for f := range a.Type().Fields() {
			if tag := f.Tag.Get("toml"); tag != "-" {
				inside := at.under(tag)
				inside.restart = at.restart || f.Tag.Get("reload") == "restart"
				c.walk(inside, a.FieldByIndex(f.Index), b.FieldByIndex(f.Index))
			}
		}
	case a.Kind() == reflect.Slice && named(a.Type().Elem()):
		c.tables(at, a, b)
	case a.Kind() == reflect.Map && a.Type().Elem().Kind() == reflect.Struct:
		for _, k := range keysOfMaps(a, b) {
			c.pair(at.under(k), a.MapIndex(reflect.ValueOf(k)), b.MapIndex(reflect.ValueOf(k)))
		}
	default:
		c.values(at, a, b)
	}
}

// under returns the place of a key within the table at d.
func (d difference) under(key string) difference {
	d.path = strings.TrimPrefix(d.path+"."+key, ".")
	return d
}

// values compares what has no keys of its own. A list or map that is empty equals one that is absent.
func (c *comparison) values(at difference, a, b reflect.Value) {
	if k := a.Kind(); (k == reflect.Slice || k == reflect.Map) && a.Len() == 0 && b.Len() == 0 {
		return
	}
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		*c = append(*c, at)
	}
}

// pair compares what may be on one side only.
func (c *comparison) pair(at difference, a, b reflect.Value) {
	switch {
	case !a.IsValid():
		c.note(at, "new")
	case !b.IsValid():
		c.note(at, "gone")
	default:
		c.walk(at, a, b)
	}
}

func (c *comparison) note(at difference, what string) {
	at.path += " (" + what + ")"
	*c = append(*c, at)
}

// tables compares arrays of tables by the names of their elements. Their order counts: the first pool that fits serves.
func (c *comparison) tables(at difference, a, b reflect.Value) {
	was, whereWas := namesOf(a)
	is, whereIs := namesOf(b)
	element := func(v reflect.Value, in map[string]int, name string) reflect.Value {
		if i, ok := in[name]; ok {
			return v.Index(i)
		}
		return reflect.Value{}
	}
	seen := map[string]bool{}
	for _, name := range slices.Concat(was, is) {
		if !seen[name] {
			seen[name] = true
			c.pair(at.under(name), element(a, whereWas, name), element(b, whereIs, name))
		}
	}
	stays := func(list []string, in map[string]int) []string {
		return slices.DeleteFunc(list, func(n string) bool {
			_, ok := in[n]
			return !ok
		})
	}
	if !slices.Equal(stays(was, whereIs), stays(is, whereWas)) {
		c.note(at, "order")
	}
}

// namesOf returns what each table of an array is called in the file, and the place of the first table of each name.
func namesOf(v reflect.Value) (list []string, first map[string]int) {
	first = map[string]int{}
	for i := range v.Len() {
		name := nameOf(v.Index(i))
		list = append(list, name)
		if _, is := first[name]; !is {
			first[name] = i
		}
	}
	return list, first
}

// named reports whether the elements are tables with a name. An array of others, as canaries, counts as one value.
func named(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	_, name := t.FieldByName("Name")
	_, id := t.FieldByName("ID")
	return name || id
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
