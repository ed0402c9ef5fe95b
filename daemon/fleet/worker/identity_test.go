package worker

import (
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	f := func(s Spec, id, url, shown, metrics string) {
		t.Helper()
		who, err := identify(s)
		if err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		if who.name != id || who.url != url || who.shown != shown || who.metrics != metrics {
			t.Errorf("%+v: %+v; want %s, %s, %s, %s", s, who, id, url, shown, metrics)
		}
		if only := who.rankOf(0, 1); only.id != id || only.key != KeyOf(id) || only.header != "" || only.rank != 0 {
			t.Errorf("%+v: the only rank is %+v; want the id's", s, only)
		}
		if third := who.rankOf(2, 4); third.id != id+"#2" || third.key != KeyOf(id+"#2") || third.header != "2" ||
			third.rank != 2 {
			t.Errorf("%+v: rank 2 of 4 is %+v", s, third)
		}
	}
	f(Spec{URL: "http://h:8000"}, "h:8000", "http://h:8000", "http://h:8000", "http://h:8000/metrics")
	f(Spec{ID: "a", URL: "https://h/base/"}, "a", "https://h/base", "https://h/base", "https://h/base/metrics")
	f(Spec{ID: "a", URL: "http://u:p@h:1"}, "a", "http://u:p@h:1", "http://h:1", "http://u:p@h:1/metrics")
	f(Spec{ID: "a", URL: "http://h:1", MetricsURL: "http://h:2/m"}, "a", "http://h:1", "http://h:1", "http://h:2/m")
}

// TestIdentifyRefuses: the error gives the right form, and shows no password.
func TestIdentifyRefuses(t *testing.T) {
	bad := []string{"", "h:1", "ftp://u:secret@h", "http://u:secret@", "http://u:secret@h:port", "http://[::1"}
	for _, url := range bad {
		_, err := identify(Spec{ID: "a", URL: url})
		if err == nil {
			t.Errorf("%q is taken", url)
			continue
		}
		if text := err.Error(); strings.Contains(text, "secret") || !strings.Contains(text, "http://host:port") {
			t.Errorf("%q: %v", url, err)
		}
	}
}

func TestSameAs(t *testing.T) {
	a, _ := identify(Spec{ID: "a", URL: "http://h:1"})
	f := func(s Spec, want bool) {
		t.Helper()
		b, err := identify(s)
		if err != nil || a.sameAs(&b) != want {
			t.Errorf("%+v: %v, %v; want %v", s, !want, err, want)
		}
	}
	f(Spec{ID: "a", URL: "http://h:1/"}, true)
	f(Spec{ID: "a", URL: "http://h:1", Weight: 3, KVTokens: 9}, true)
	f(Spec{ID: "b", URL: "http://h:1"}, false)
	f(Spec{ID: "a", URL: "http://h:2"}, false)
	f(Spec{ID: "a", URL: "http://h:1", MetricsURL: "http://h:9/metrics"}, false)
	f(Spec{ID: "a", URL: "http://u@h:1"}, false) // other credentials make another worker
}
