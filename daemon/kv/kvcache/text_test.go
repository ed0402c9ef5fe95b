package kvcache

import (
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	f := func(key, want string) {
		t.Helper()
		if got := Text(key); got != want {
			t.Errorf("%q is written %q; want %q", key, got, want)
		}
		if got, err := ParseText(want); got != key || err != nil {
			t.Errorf("%q is read as %q, %v; want %q", want, got, err, key)
		}
	}
	f("r\x00org/m@1@0@-5@half@user%alice", "resp/0/org/m@1@0@-5@half@user%25alice")
	f("r\x0f", "resp/15/")
	f("r", "resp/")
	f("h", "hyperpod/")
	f("h\x07lmcacheorg/m@1", "hyperpod/lmcache/org/m@1")
	f("h\x03a/bé a\xff\x00", "hyperpod/a%2Fb/é%20a%FF%00")
	f("", "")
	f("x", "raw/x")
	f("h\x09short", "raw/h%09short")
	bad := func(text, want string) {
		t.Helper()
		if key, err := ParseText(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %q, %v; want an error with %q", text, key, err, want)
		}
	}
	bad("org/m", "begin with resp/")
	bad("resp", "begin with resp/")
	bad("resp/0", "ends within")
	bad("hyperpod/lmc", "ends within")
	bad("resp/256/a", "no database")
	bad("resp/x/a", "no database")
	bad("resp/0/a%2", "%25")
	bad("hyperpod/%/a", "%25")
	bad("hyperpod/"+strings.Repeat("a", 256)+"/a", "")
}

func FuzzText(f *testing.F) {
	f.Add("r\x00org/m@1@0@-5@half@user%alice")
	f.Add("h\x07lmcache \xff\u200b")
	f.Add("h\x02//a")
	f.Fuzz(func(t *testing.T, key string) {
		if got, err := ParseText(Text(key)); got != key || err != nil {
			t.Errorf("%q comes back as %q, %v", key, got, err)
		}
	})
}
