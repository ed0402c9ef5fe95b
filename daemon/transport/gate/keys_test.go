package gate

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

var team = []Key{
	{Name: "a", Secret: "key-of-a", Models: []string{"*"}},
	{Name: "b", Secret: "key-of-b", Models: []string{"org/*", "exact"}},
	{Name: "empty", Secret: "", Models: []string{"*"}},
	{Name: "none", Secret: "key-of-none"},
}

func TestCheck(t *testing.T) {
	keys := NewKeys(team)
	f := func(authorization, xAPIKey, want string) {
		t.Helper()
		c, ok := keys.Check(authorization, xAPIKey)
		if ok != (want != "") || ok != (c != nil) || ok && c.Name != want {
			t.Errorf("Check(%q, %q) = %+v, %v; want %q", authorization, xAPIKey, c, ok, want)
		}
	}
	f("Bearer key-of-a", "", "a")
	f("bearer key-of-b", "", "b")
	f("BEARER   key-of-b  ", "", "b")
	f("", "key-of-b", "b")
	f("Bearer wrong", "key-of-b", "b")
	f("Bearer key-of-a", "wrong", "a")
	f("Bearer key-of-a", "key-of-b", "a")
	f("Bearer key-of-b", "key-of-a", "b")
	f("Bearer key-of-none", "", "none")

	f("", "", "") // the key that was configured empty opens nothing
	f("Bearer ", "", "")
	f("Bearer", "", "")
	f("Bearer key-of-", "", "")
	f("Bearer key-of-aa", "", "")
	f("Bearer KEY-OF-A", "", "")
	f("Bearer\tkey-of-a", "", "")
	f("Basic key-of-a", "", "")
	f("key-of-a", "", "")
	f("Bearerkey-of-a", "", "")
	f("", "Bearer key-of-a", "")
	f("Bearer key-of-a, Bearer key-of-b", "", "")
}

func TestWithoutKeysEverybodyPasses(t *testing.T) {
	for _, keys := range []*Keys{nil, NewKeys(nil), NewKeys([]Key{})} {
		c, ok := keys.Check("Bearer anything", "")
		if !ok || c.Name != "" || !c.Allows("any/model") || !c.Allows("") {
			t.Errorf("got %+v, %v", c, ok)
		}
	}
}

func TestAllows(t *testing.T) {
	f := func(models string, model string, want bool) {
		t.Helper()
		c := &Caller{models: strings.Fields(models)}
		if got := c.Allows(model); got != want {
			t.Errorf("%q allows %q = %v; want %v", models, model, got, want)
		}
	}
	f("*", "org/a", true)
	f("*", "", true)
	f("org/*", "org/a", true)
	f("org/*", "org/a/b", true)
	f("org/*", "org", false)
	f("org/*", "Org/a", false)
	f("org/*", "", false)
	f("exact", "exact", true)
	f("exact", "exactly", false)
	f("exact", "", false)
	f("a b/* c", "b/x", true)
	f("", "a", false)
	f("", "", false)
	f("a*", "a*", true)
}

// The time that Check takes must not show which key was near: it compares with all of them, wherever the right one
// stands. That shows without a clock: if the last key is the same as an earlier one, the last wins, which a walk with
// an early exit cannot know.
func TestCheckComparesEveryKey(t *testing.T) {
	const n = 50
	var list []Key
	for i := range n {
		list = append(list, Key{Name: fmt.Sprint(i), Secret: fmt.Sprint("key-", i)})
	}
	keys := NewKeys(list)
	for i := range n {
		if c, ok := keys.Check("Bearer key-"+fmt.Sprint(i), ""); !ok || c.Name != fmt.Sprint(i) {
			t.Fatalf("key %d is not found", i)
		}
		saved := keys.digests[n-1]
		keys.digests[n-1] = sha256.Sum256([]byte("key-" + fmt.Sprint(i)))
		if c, _ := keys.Check("", "key-"+fmt.Sprint(i)); c == nil || c.Name != fmt.Sprint(n-1) {
			t.Fatalf("key %d: the walk ended at the first that fits", i)
		}
		keys.digests[n-1] = saved
	}
}

// Keys keep no secret that a dump could show.
func TestKeysHoldNoSecret(t *testing.T) {
	if s := fmt.Sprintf("%+v", *NewKeys(team)); strings.Contains(s, "key-of") {
		t.Errorf("a secret stands in %s", s)
	}
}

// FuzzCheck holds Check to a plain reading of the two fields.
func FuzzCheck(f *testing.F) {
	f.Add("Bearer key-of-a", "")
	f.Add("bEaReR  key-of-b ", "key-of-a")
	f.Add("Bearer ", "\x00")
	f.Add("", "key-of-none")
	keys := NewKeys(team)
	f.Fuzz(func(t *testing.T, authorization, xAPIKey string) {
		token := ""
		if len(authorization) > 7 && strings.ToLower(authorization[:7]) == "bearer " {
			token = strings.Trim(authorization[7:], " ")
		}
		want := ""
		for _, shown := range []string{token, xAPIKey} {
			for _, k := range team {
				if want == "" && shown != "" && shown == k.Secret {
					want = k.Name
				}
			}
		}
		c, ok := keys.Check(authorization, xAPIKey)
		if ok != (want != "") || ok && c.Name != want {
			t.Fatalf("Check(%q, %q) = %+v, %v; want %q", authorization, xAPIKey, c, ok, want)
		}
	})
}

func BenchmarkCheck100Keys(b *testing.B) {
	var list []Key
	for i := range 100 {
		list = append(list, Key{Name: fmt.Sprint(i), Secret: fmt.Sprintf("a-key-of-usual-length-%08d", i)})
	}
	keys := NewKeys(list)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := keys.Check("Bearer a-key-of-usual-length-00000050", ""); !ok {
			b.Fatal("not found")
		}
	}
}
