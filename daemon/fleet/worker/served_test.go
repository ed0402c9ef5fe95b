package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestCacheName: names of one root are one, those of adapters and those on which workers disagree stay apart.
func TestCacheName(t *testing.T) {
	for _, c := range []struct {
		what  string
		lists []string // of a worker: id=root, or id=root<parent
		want  string   // of a to d
	}{
		{"one name", []string{"b=r"}, "a b c d"},
		{"several", []string{"c=r b=r d=q"}, "a b b d"},
		{"an adapter", []string{"a=r b=r c=r<a d=l<a"}, "a a c d"},
		{"two adapters of one folder", []string{"a=r c=l<a d=l<a"}, "a b c d"},
		{"no root", []string{"a= b="}, "a b c d"},
		{"one lists fewer", []string{"b=r c=r", "c=r"}, "a b b d"},
		{"another name elsewhere", []string{"b=r c=r", "a=r"}, "a a a d"},
		{"one name each", []string{"b=r", "c=r"}, "a b c d"},
		{"they disagree", []string{"b=r c=r", "b=r c=q"}, "a b c d"},
		{"and a third agrees", []string{"b=r c=r", "b=r c=q", "b=r c=r d=r"}, "a b c b"},
		{"an adapter elsewhere", []string{"b=r c=r", "b=r c=r<b"}, "a b c d"},
	} {
		p := New(Config{Workers: specs(len(c.lists))}, start)
		for i, list := range c.lists {
			p.heal(i, 0)
			var ids []string
			var entries []json.RawMessage
			for _, item := range strings.Fields(list) {
				id, of, _ := strings.Cut(item, "=")
				root, parent, _ := strings.Cut(of, "<")
				ids = append(ids, id)
				entries = append(entries, fmt.Appendf(nil, `{"id":%q,"root":%q,"parent":%q}`, id, root, parent))
			}
			p.Listed(p.fleet.workers[i].number, ids, entries)
		}
		var got []string
		for _, model := range []string{"a", "b", "c", "d"} {
			got = append(got, p.CacheName(model))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.what, got, c.want)
		}
		p.Update(nil, start)
		if got := p.CacheName("c"); got != "c" {
			t.Errorf("%s, without workers: %s", c.what, got)
		}
	}
}
