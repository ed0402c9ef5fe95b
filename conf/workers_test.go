package conf

import (
	"reflect"
	"strings"
	"testing"
)

func TestLoadWorkers(t *testing.T) {
	got, err := LoadWorkers("../testdata/conf/files/workers.toml")
	if err != nil {
		t.Fatal(err)
	}
	want := []Worker{
		{URL: "http://127.0.0.1:9001", ID: "w-e25838", MetricsURL: "http://127.0.0.1:9001/metrics", Weight: 1, Cost: 1, Role: "both"},
		{URL: "http://127.0.0.1:9002", ID: "second", MetricsURL: "http://127.0.0.1:9002/metrics", Weight: 2, KVTokens: 1000, Cost: 1,
			Role: "both"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v; want %+v", got, want)
	}
	if _, err := LoadWorkers("../testdata/conf/files/absent.toml"); err == nil || !strings.Contains(err.Error(), "absent.toml") {
		t.Errorf("an absent file: %v", err)
	}
}

// What a pool lists and what a file lists is read alike.
func TestWorkersFileIsReadAsPoolsAre(t *testing.T) {
	const tables = "[[%]]\nurl = 'http://a:1/'\n[[%]]\nurl = 'https://b'\nid = 'b'\nweight = 2.5\nmetrics_url = 'http://c:9/m'\nkv_tokens = 7\n" +
		"cost = 0.25\nlabels = {tier = 'batch', \"rack/row\" = 'a-1'}\n"
	c, err := Parse([]byte("[[pools]]\n"+strings.ReplaceAll(tables, "%", "pools.workers")), "x.toml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := parseWorkers([]byte("\ufeff"+strings.ReplaceAll(tables, "%", "workers")), "w.toml")
	if err != nil || !reflect.DeepEqual(got, c.Pools[0].Workers) {
		t.Errorf("got %+v, %v; want %+v", got, err, c.Pools[0].Workers)
	}
}

func TestNoWorkersMustBeSaid(t *testing.T) {
	if got, err := parseWorkers([]byte("workers = []"), "w.toml"); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v; want none", got, err)
	}
	for _, doc := range []string{"", "# soon\n", "[[workers]]\nur"} {
		if got, err := parseWorkers([]byte(doc), "w.toml"); err == nil {
			t.Errorf("%q: got %v; want an error", doc, got)
		}
	}
}

func TestWorkerSources(t *testing.T) {
	f := func(pool string) {
		t.Helper()
		if _, err := Parse([]byte("[[pools]]\n"+pool), "../testdata/conf/x.toml"); err != nil {
			t.Errorf("%s: %v", pool, err)
		}
	}
	f("workers = [{url = 'http://a'}]")
	f("workers_file = 'files/workers.toml'")
	f("workers_dns = 'vllm.default.svc.cluster.local:8000'")
	f("workers_dns = '_http._tcp.vllm:1'")
	f("workers_dns = 'a:65535'\nworkers_file = 'files/workers.toml'\nworkers = [{url = 'http://a'}]")
}

// FuzzLoadWorkers holds that no input panics, and that what is accepted has all that a worker needs.
func FuzzLoadWorkers(f *testing.F) {
	f.Add("[[workers]]\nurl = 'http://a'\n[[workers]]\nurl = 'http://b'\nweight = 2")
	f.Add("workers = [{url = 'http://a'}, 5]")
	f.Add("workers = []")
	f.Add("workers = {url = 'x'}")
	f.Fuzz(func(t *testing.T, doc string) {
		workers, err := parseWorkers([]byte(doc), "w.toml")
		if err != nil {
			for _, p := range err.(Problems) {
				if p.What == "" || p.Remedy == "" {
					t.Fatalf("%q: %+v", doc, p)
				}
			}
			return
		}
		for _, w := range workers {
			if w.URL == "" || w.ID == "" || w.MetricsURL == "" || !(w.Weight > 0 && w.Cost > 0) {
				t.Fatalf("%q: accepted %+v", doc, w)
			}
		}
	})
}
