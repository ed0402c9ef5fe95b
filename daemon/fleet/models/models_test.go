package models

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sec returns s seconds.
func sec(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// TestUsesAreBounded: idle adapters make room, and those in flight are not forgotten.
func TestUsesAreBounded(t *testing.T) {
	var u Uses
	first := u.Begin("first", sec(0))
	for i := range 2 * maxUsed {
		if a := u.Begin(fmt.Sprint(i), sec(1)); a != nil {
			u.End(a, sec(1))
		}
	}
	if len(u) != maxUsed || u.find("first") < 0 || first.n != 1 {
		t.Errorf("%d adapters, the first at %d with %d", len(u), u.find("first"), first.n)
	}
	for i := range maxUsed {
		u.Begin(fmt.Sprint("more", i), sec(2))
	}
	if a := u.Begin("one too many", sec(3)); a != nil || len(u) != maxUsed {
		t.Errorf("%v is counted, of %d", a, len(u))
	}
}

func TestListingFits(t *testing.T) {
	f := func(l *Listing, model string, want bool) {
		t.Helper()
		if got := l.Fits(model); got != want {
			t.Errorf("%q fits %+v: %v; want %v", model, l, got, want)
		}
	}
	l := newListing([]string{"base", "lora"})
	f(nil, "any", true) // not read yet
	f(nil, "", true)
	f(l, "", true)
	f(l, "base", true)
	f(l, "lora", true)
	f(l, "Base", false)
	f(newListing(nil), "base", false)
	f(newListing(nil), "", true)
}

func TestLengthsOf(t *testing.T) {
	f := func(want []int, entries ...string) {
		t.Helper()
		var ids []string
		var raw []json.RawMessage
		for i, e := range entries {
			ids, raw = append(ids, string(rune('a'+i))), append(raw, json.RawMessage(e))
		}
		if got := Read(ids, raw).Lengths; !slices.Equal(got, want) {
			t.Errorf("%s: %v; want %v", entries, got, want)
		}
	}
	f([]int{4096}, `{"id":"a","max_model_len":4096}`)
	f([]int{4096, 4096}, `{"id":"a","max_model_len":4096}`, `{"id":"b","parent":"a","max_model_len":null}`) // an adapter
	f([]int{2048, 4096}, `{"id":"a","parent":"b","max_model_len":2048}`, `{"id":"b","max_model_len":4096}`)
	f([]int{0, 0}, `{"id":"a"}`, `{"id":"b","parent":"other"}`)
	f([]int{0, 0, 0}, `{"max_model_len":-1}`, `{"max_model_len":"x"}`, `{"max_model_len":1e12}`)
	f([]int{0}, `[]`)
	f([]int{}, []string{}...)
	if got := Read([]string{"a"}, nil).Lengths; got[0] != 0 { // no entry
		t.Error(got)
	}
}

func TestReadListing(t *testing.T) {
	l := Read([]string{"a", "b", "c", "d", "e"}, []json.RawMessage{[]byte(`{"root":"r","parent":null}`),
		[]byte(`{"root":1}`), []byte(`[]`), []byte(`{"root":"x","parent":"a","max_model_len":"long"}`)})
	if roots, adapters := strings.Join(l.roots, ","), strings.Join(l.Adapters, ","); roots != "r,,,," || adapters != "d" {
		t.Errorf("roots %q, adapters %q", roots, adapters)
	}
}
