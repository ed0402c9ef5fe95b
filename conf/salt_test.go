package conf

import (
	"reflect"
	"testing"
)

func TestCacheSalt(t *testing.T) {
	f := func(v any, want string, is any) {
		t.Helper()
		var s CacheSalt
		if err := s.UnmarshalTOML(v); err != nil || s.Of("a", "secret") != want || shown(reflect.ValueOf(s), "") != is {
			t.Errorf("%v: %q, %q, %v", v, s.Of("a", "secret"), shown(reflect.ValueOf(s), ""), err)
		}
	}
	made := CacheSalt{On: true}.Of("a", "secret")
	f(true, made, true)
	f(false, "", false)
	f("team-a_1.x", "team-a_1.x", hidden)
	if made == (CacheSalt{On: true}).Of("b", "secret") || made == (CacheSalt{On: true}).Of("a", "other") || len(made) != 22 {
		t.Errorf("the salt made of a key is %q", made)
	}
	for _, bad := range []any{"", "a/b", "a b", 1, int64(1), []any{}} { // a slash stands between it and a client's own
		if err := new(CacheSalt).UnmarshalTOML(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}
