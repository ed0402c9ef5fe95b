package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/cli/redecide"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// TestRecordsAreDecidedAgain: the module that has served comes to each of its choices again from the access log alone;
// another differs, and loses tokens that were held; lines that cannot be read are named.
func TestRecordsAreDecidedAgain(t *testing.T) {
	t.Parallel()
	const requests = 30
	text, err := os.ReadFile(explained(t, requests))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	again := func(name string, wasm []byte, err error) *redecide.Report {
		t.Helper()
		got := decidedAgain(t, wasm, err, string(text)+"{\"id\":\n"+
			strings.Replace(first, `"packed_frame":"`, `"packed_frame":"AAAA`, 1)+"\n"+`{"id":"x","packed_frame":"?"}`+"\n"+`{"id":"y"}`)
		if got.Lines != requests+4 || got.Unheld != 1 || got.BadLines != 3 || got.Bad[0].Line != requests+1 || got.Decided != requests {
			t.Errorf("%s: %+v", name, got)
		}
		return got
	}
	wasm, err := plugins.Builtin("prefixaware")
	if got := again("prefixaware", wasm, err); got.Agreed != requests || got.Chosen != got.Recorded || len(got.Differ) != 0 {
		t.Errorf("the same module: %+v", got)
	}
	worst, err := wasmtest.Assemble(`(module (memory (export "memory") 1)
		(func (export "warmpath_abi_1_1")) (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_pick") (result i64) (local $b i32)
			i32.const 1116 i32.load i32.const 1 i32.add i32.const 1036 i32.load i32.rem_u i64.extend_i32_u))`) // next to BestRow
	got := again("worst", worst, err)
	if got.Agreed == requests || len(got.Differ) == 0 || got.Chosen.HeldTokens >= got.Recorded.HeldTokens ||
		got.Differ[0].Chosen == got.Differ[0].Recorded || got.Differ[0].ID == "" {
		t.Errorf("another module: %+v", got)
	}
	trap, err := wasmtest.File("../testdata/modules/sometimes.wat")
	if got := again("sometimes", trap, err); got.Failed > 0 && got.Last == "" || got.Failed+got.Declined+got.Rejected > requests {
		t.Errorf("a module that traps: %+v", got)
	}
}

// decidedAgain has a module decide the records of a log again. err is of its making.
func decidedAgain(t *testing.T, wasm []byte, err error, log string) *redecide.Report {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return decideAgain(t, host.Options{}, wasm, log)
}

// TestRecordedRejections: whom the strategy turned away is no choice of a worker. To turn it away again is to agree.
func TestRecordedRejections(t *testing.T) {
	t.Parallel()
	log, file := filepath.Join(t.TempDir(), "access.log"), filepath.Join(t.TempDir(), "rejects.wasm")
	wasm, err := wasmtest.Assemble(rejects)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(wasm))
	r := start(t, withServer(settings("mine", sims(t, 2, vllmsim.Config{}).URLs()...)+fmt.Sprintf("[strategies.mine]\npath = %q\n", file),
		fmt.Sprintf("access_log = %q\nexplain_log = \"all\"", log)), 2)
	for range 3 {
		if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":403}`); s.status != 403 {
			t.Fatal(s.status, s.body)
		}
	}
	eventually(t, "a line each", func() bool { return len(logged(t, log)) == 3 })
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	f := func(name string, wasm []byte, err error, text string, want redecide.Report) {
		t.Helper()
		got := decidedAgain(t, wasm, err, text)
		if got.Decided != 3 || got.Turned != want.Turned || got.Agreed != want.Agreed || got.Rejected != want.Rejected ||
			len(got.Differ) != want.Decided || got.Chosen != got.Recorded {
			t.Errorf("%s: %+v; want %+v", name, got, want)
		}
		if len(got.Differ) > 0 && (got.Differ[0].Recorded != "rejected with 403" || got.Differ[0].Gain != redecide.Worth{}) {
			t.Errorf("%s: %+v", name, got.Differ[0])
		}
	}
	f("rejects", wasm, nil, string(text), redecide.Report{Turned: 3, Agreed: 3})
	builtin, err := plugins.Builtin("roundrobin")
	f("roundrobin", builtin, err, string(text), redecide.Report{Turned: 3, Decided: 3}) // Decided: how many differ
	f("rejects", wasm, nil, strings.ReplaceAll(string(text), `"rejected_by_strategy"`, `"ok"`), redecide.Report{Rejected: 3})
}
