package goredis

import (
	"strings"
	"testing"
)

// TestURLs: a broken URL is refused, without a word of it in the error.
func TestURLs(t *testing.T) {
	f := func(url string, want Kind) {
		t.Helper()
		p, err := Parse(url)
		if want == "" && err == nil || want != "" && (err != nil || p.Kind != want) {
			t.Errorf("%s is %q, %v; want %q", url, p.Kind, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("the error shows the URL: %v", err)
		}
	}
	f("redis://h:1/2", Single)
	f("rediss://u:p@h:1", Single)
	f("redis://u:p@h:1?master_name=m&addr=h:2", Sentinel)
	f("redis://u:p@h:1?cluster=true&addr=h:2", Cluster)
	f("rediss://h:1?cluster=1", Cluster)
	f("http://hidden:1", "")
	f("redis://u:hidden@h:port", "")
	f("redis://u:hidden@h:1?wrong=1", "")
	f("redis://u:hidden@h:1/x", "")
	f("redis://u:hidden@h:1?cluster=yes", "")
	f("redis://h:1?pool_size=100", Single)
	f("redis://u:hidden@h:1?pool_size=-1", "")
	f("redis://u:hidden@h:1?master_name=m&pool_size=-1", "")
	f("redis://u:hidden@h:1?cluster=true&pool_size=1000000000000", "")
	f("", "")
	f("unix:///run/redis.sock?db=1", Single)
	f("redis://[::1]:6379", Single)
	for _, several := range []string{"redis://a:1,b:1", "redis://u:hidden@a:1,b:1/0", "rediss://a,b:1", "redis://a b:1",
		"redis://h:0", "redis://h:99999", "redis://h:", "redis://:1", "redis://a;b"} {
		f(several, "")
	}
}

func TestTagged(t *testing.T) {
	for prefix, want := range map[string]string{"warmpath:": "{warmpath}:", "warmpath/": "{warmpath}/", "a": "{a}",
		"{x}:": "{x}:"} {
		if got := Tagged(prefix); got != want {
			t.Errorf("%s: %s; want %s", prefix, got, want)
		}
	}
}
