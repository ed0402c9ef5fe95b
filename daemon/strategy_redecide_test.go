package daemon

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/transport/packed"
	"github.com/warmpath/warmpath/plugins"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

// explained has so many requests, of which some share their prompts' beginnings, decided by prefixaware among three
// workers. It returns the access log, which explains each.
func explained(t *testing.T, requests int) (log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "access.log")
	r := start(t, withServer(settings("prefixaware", sims(t, 3, vllmsim.Config{}).URLs()...),
		fmt.Sprintf("access_log = %q\nexplain_log = \"all\"", log)), 3)
	rng := rand.New(rand.NewPCG(10, 4))
	for i := range requests {
		body := fmt.Sprintf(`{"model":"sim","prompt":%q,"max_tokens":2}`, words(rand.New(rand.NewPCG(1, rng.Uint64N(4))), 100+20*i))
		if s := r.do("POST", "/v1/completions", body); s.status != 200 {
			t.Fatal(s.status, s.body)
		}
	}
	eventually(t, "a line each", func() bool { return len(logged(t, log)) == requests })
	return log
}

// TestALoggedDecisionIsDecidedAgain: what a line of the access log holds is enough for the strategy to come to the same
// choice, without the daemon.
func TestALoggedDecisionIsDecidedAgain(t *testing.T) {
	for i, line := range logged(t, explained(t, 30)) {
		frame := decodeFrame(t, fmt.Sprint(line["packed_frame"]))
		again := frame.Run(t, plugins.Native("prefixaware"))
		first, _ := line["candidates"].([]any)[0].(map[string]any)
		if got := frame.Rows[again.Row].Key; got != worker.KeyOf(fmt.Sprint(first["worker"])) {
			t.Errorf("request %d: decided again, key %x; the log says %v: %v", i, got, first["worker"], line["reason"])
		}
		if line["endpoint"] != "completion" || line["worker"] != first["worker"] {
			t.Errorf("request %d: endpoint %v, served by %v, chosen %v", i, line["endpoint"], line["worker"], first["worker"])
		}
	}
}

// decodeFrame reads the field "packed_frame" of a line.
func decodeFrame(t *testing.T, text string) *sdktest.Frame {
	t.Helper()
	packedFrame, err := base64.StdEncoding.DecodeString(text)
	raw, ok := packed.ReadTable(packedFrame, abi.HeaderSize, abi.RowSize)
	if err != nil || !ok {
		t.Fatalf("%v: %.80s", err, text)
	}
	f := sdktest.NewFrame((len(raw) - abi.HeaderSize) / abi.RowSize)
	in := bytes.NewReader(raw)
	if err := binary.Read(in, binary.LittleEndian, &f.Header); err != nil {
		t.Fatal(err)
	}
	if err := binary.Read(in, binary.LittleEndian, f.Rows); err != nil || int(f.Header.Rows) != len(f.Rows) {
		t.Fatalf("%v: %d rows, the header says %d", err, len(f.Rows), f.Header.Rows)
	}
	return f
}
