package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/request/record"
)

const someDecision = `{"id":"r1","pool":"main","strategy":"prefixaware","model":"m","prompt_tokens":34,"prompt_blocks":2,
"worker":"gpu-1","reason":"longest prefix","believed_tokens":32,"method":"POST","path":"/v1/completions","status":200,
"at":"2026-11-22T10:00:00Z","seconds":1.5,"ttft_ns":250000000,"stream":true,"usage":{"prompt_tokens":34,"output_tokens":7,"cached_tokens":16},
"attempts":[{"worker":"gpu-9","reason":"connect"}],"candidates":[
{"worker":"gpu-1","state":"up","gpu_blocks":2,"prefill":0.001,"cost":0.001,"slowness":1},
{"worker":"gpu-2","state":"up","gpu_blocks":0,"prefill":0.003,"cost":0.0035,"slowness":1.5,"in_flight":3},
{"worker":"gpu-4","state":"up","skipped":"does not list the model","in_flight":2,"slowness":1},
{"worker":"gpu-3","state":"down","skipped":"down: refused"}]}`

func TestWhy(t *testing.T) {
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/decisions/r1":
			io.WriteString(w, someDecision)
		case "/api/v1/decisions/hung":
			io.WriteString(w, `{"id":"hung","pool":"main","strategy":"prefixaware","model":"m","reason":"longest prefix","method":"POST",
"path":"/v1/completions","status":499,"at":"2026-11-22T10:00:00Z","seconds":20,"end":"client_gone",
"split":{"prefiller":"gpu-7","result":"done","took_ns":120000000},
"attempts":[{"worker":"gpu-9","reason":"client_gone","after_ns":20000000000}]}`)
		case "/api/v1/decisions/named":
			io.WriteString(w, strings.Replace(someDecision, `"model":"m"`, `"model":"m","alias":"fast"`, 1))
		case "/api/v1/decisions/paired":
			io.WriteString(w, strings.Replace(someDecision, `"model":"m"`, `"model":"m","split":{"prefiller":"gpu-7","result":"done","took_ns":1}`, 1))
		case "/api/v1/decisions":
			io.WriteString(w, "["+someDecision+"]")
		default:
			http.Error(w, `{"error":"it is not kept"}`, 404)
		}
	}))
	defer admin.Close()
	f := func(line string, code int, want ...string) {
		t.Helper()
		p := warmpath(t, workplace(t), line+" --admin "+admin.URL)
		if got := p.end(); got != code {
			t.Errorf("%s: exit %d:\n%s", line, got, p)
		}
		for _, w := range want {
			if !strings.Contains(p.String(), w) {
				t.Errorf("%s lacks %q:\n%s", line, w, p)
			}
		}
	}
	f("why r1", 0, "gpu-1, by prefixaware: longest prefix", "34 tokens, 32 believed cached there, 16 of 34 by the engine's own count",
		"tried before  gpu-9: connect", "200 after 1.500s, first output after 0.250s, 7 tokens", "2 of 2", "+2.5 ms", "down: refused",
		"gpu-4   -        -         -           -            2          -")
	f("why hung", 0, "nobody answered", "at gpu-7: done after 120ms", "tried     gpu-9: client_gone after 20s", "ended: client_gone")
	f("why named", 0, "m, asked for as fast")
	f("why paired", 0, "34 tokens, handed over by gpu-7, 16 of 34 by the engine's own count")
	f("why", 2, "give one request: its X-Request-Id, or last")
	f("why last", 0, "request       r1")
	f("why r1 --json", 0, `"worker":"gpu-1"`, `"cached_tokens":16`)
	f("why r2", 1, "it is not kept")

	log := filepath.Join(t.TempDir(), "access.log")
	write(t, log, `{"time":"2026-11-22T10:00:01Z","msg":"request","id":"r2","key":"team","method":"POST","path":"/v1/completions","status":200,`+
		`"seconds":1.5,"ttft_seconds":0.5,"stream":true,"model":"m","pool":"p","worker":"w2","strategy":"s","reason":"least cost","blocks":2,"believed_tokens":5,`+
		`"prompt_tokens":40,"cached_tokens":16,"output_tokens":3,"queue_seconds":0.1,"retries":0,"end":"",`+
		`"prefiller":"","prefill":"no_prefiller","prefill_why":"no_worker","prefill_seconds":0.001}`+"\n"+
		`{"time":"2026-11-22T10:00:02Z","msg":"request","id":"r22","status":401,"end":"invalid_api_key"}`+"\n"+
		`{"time":"2026-11-22T10:00:02Z","msg":"request","id":"nameless","status":400,"end":"missing_model"}`+"\n"+
		`{"time":"2026-11-22T10:00:02Z","msg":"request","id":"hung","status":499,"strategy":"s","end":"client_gone","worker":"",`+
		`"tried":[{"worker":"w9","reason":"refused","after_seconds":0.5},{"worker":"w7","reason":"client_gone","after_seconds":50.1}]}`+"\n")
	f("why hung --log "+log, 0, "nobody answered", "tried     w9: refused after 500ms", "w7: client_gone after 50.1s")
	f("why r2 --log "+log, 0, "w2, by s: least cost", "16 of 40 by the engine's own count",
		"where it is answered: no prefiller took it (no_worker)", "first output after 0.500s", "server.explain_log")
	f("why r22 --log "+log, 0, "refused with invalid_api_key", "model     not read")
	f("why nameless --log "+log, 0, "model     none named")
	f("why r3 --log "+log, 1, "no line of the log has that id")
	f("why r3 --log "+log+".gone", 1, "--log cannot be read")
}

// TestWaitOf: a request that waits still says so.
func TestWaitOf(t *testing.T) {
	d := &decisions.Decision{Open: true}
	d.Queued = &record.Queued{Waits: true, Waited: 3 * time.Second, Behind: 4, Priority: -1}
	want := "3s so far in the router's queue, for a worker with room, behind some 4 others, with priority -1"
	if got := waitOf(d); got != want || decision(d) != "none yet" {
		t.Errorf("%s; %s", got, decision(d))
	}
	d.Empty = true
	if got := waitOf(d); !strings.Contains(got, "for a worker: none is up, behind") {
		t.Error(got)
	}
	d.Waits, d.Empty = false, false
	if got := waitOf(d); got != "3s in the router's queue, for a worker with room, behind some 4 others, with priority -1" {
		t.Error(got)
	}
	d.Waited = 0
	if got := waitOf(d); got != "not at all: it was turned away at once, behind some 4 others, with priority -1" {
		t.Error(got)
	}
	d.Aliased = &record.Aliased{Alias: "chat", Fell: "down"}
	if d.Model = "small"; modelOf(d) != "small, asked for as chat, as its fallback (down)" {
		t.Error(modelOf(d))
	}
	d.Cut, d.Priority = 10, 0
	if got := waitOf(d); !strings.HasSuffix(got, "with priority 0 (class 10 is cut to 0 by [[keys]] priority)") {
		t.Error(got)
	}
}
