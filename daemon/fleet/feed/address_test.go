package feed

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAddress(t *testing.T) {
	f := func(at string, rank int, want string) {
		t.Helper()
		got, err := Address(at, "http://u:p@10.1.2.3:8000", rank)
		if got != want || (err != nil) != (want == "" && at != "") {
			t.Errorf("%q rank %d: %q, %v; want %q", at, rank, got, err, want)
		}
	}
	f("", 3, "")
	f("tcp://*:5557", 0, "tcp://10.1.2.3:5557")
	f("tcp://0.0.0.0:5557", 2, "tcp://10.1.2.3:5559")
	f("tcp://[::]:5557", 0, "tcp://10.1.2.3:5557")
	f("tcp://gpu-7:5557", 1, "tcp://gpu-7:5558")
	f("ipc:///run/kv", 0, "ipc:///run/kv")
	f("ipc:///run/kv", 2, "ipc:///run/kv_dp2")
	f("tcp://*:65535", 1, "")
	f("tcp://*", 0, "")
}

func TestAsk(t *testing.T) {
	f := func(status int, body string, rank int, want place, wrong string) {
		t.Helper()
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/kv_event_sources" {
				t.Errorf("path %s", r.URL.Path)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}))
		defer s.Close()
		ranks, err := ask(context.Background(), s.Client(), s.URL)
		var got place
		if err == nil {
			got, err = placeAmong(ranks, &Origin{URL: "http://w:1", Replay: "tcp://*:9"}, rank)
		}
		if got != want || (wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%d %s: %+v, %v; want %+v, %q", status, body, got, err, want, wrong)
		}
	}
	one := `{"0":{"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558"}}`
	f(200, one, 0, place{"tcp://w:5557", "tcp://w:5558"}, "")
	f(200, one, 2, place{"tcp://w:5559", "tcp://w:5560"}, "")
	f(200, `{"0":{"enable_kv_cache_events":true,"endpoint":"tcp://*:5557","replay_endpoint":null},
		"1":{"enable_kv_cache_events":true,"endpoint":"tcp://*:6000","replay_endpoint":null}}`, 1,
		place{"tcp://w:6000", "tcp://w:10"}, "")
	f(200, `{"0":{"enable_kv_cache_events":false,"endpoint":"tcp://*:5557"}}`, 0, place{}, "publishes no KV events")
	f(200, `{}`, 0, place{}, "publishes no KV events")
	f(200, `{"1":{"enable_kv_cache_events":true,"endpoint":"tcp://*:5557"}}`, 0, place{}, "names no source of its rank 0")
	f(200, `[1]`, 0, place{}, "/kv_event_sources")
	f(404, `{"detail":"Not Found"}`, 0, place{}, "from 0.31 on")
	f(503, ``, 0, place{}, "503")
	if _, err := ask(context.Background(), http.DefaultClient, "http://user:secret@127.0.0.1:1"); err == nil ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestNamed(t *testing.T) {
	for topic, want := range map[string]string{"kv@w1@org/model": "w1", "kv@w1": "w1", "w1": "w1", "": "", "kv@@m": ""} {
		if got := named(topic); got != want {
			t.Errorf("%q names %q; want %q", topic, got, want)
		}
	}
}
