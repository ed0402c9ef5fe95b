package replay

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func testReport() Report {
	good := Result{
		Model: "A", Speed: 20, Requests: 5719, Sent: 5719, Answered: 5719, Errors: map[string]int{},
		TTFT:         Distribution{Count: 5719, Mean: .8123, P50: .41, P90: 2.3, P99: 12.34, Max: 20},
		Total:        Distribution{Count: 5719, Mean: 9, P50: 8, P90: 21, P99: 40, Max: 50},
		BlockHitRate: .2871, PromptBlocks: 10, PromptTokens: 160, TraceTokens: 160, TokenHitRate: .287,
		Workers: 8, WorkBusiestOverMean: 1.1, RequestsBusiestOverMean: 1.21, PeakInFlight: 120, WallSeconds: 91,
	}
	bad := Result{
		Model: "round-robin-model", Speed: 20, Requests: 5719, Sent: 5000, Answered: 4990,
		Errors: map[string]int{"status 503": 10, "not sent": 719}, FirstError: "status 503: no worker is up",
		Held: 12, LateSecondsMax: 3.21, NoUsage: 4, PromptTokens: 160, TraceTokens: 150, PromptBlocks: 10,
	}
	return Report{Trace: "x.jsonl", Speed: 20, Results: []Result{good, bad}}
}

func TestWriteText(t *testing.T) {
	var out strings.Builder
	if err := testReport().WriteText(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	table, notes, _ := strings.Cut(text, "round-robin-model: ")
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	if len(lines) != len(textRows) {
		t.Fatalf("%d lines for %d rows:\n%s", len(lines), len(textRows), text)
	}
	for _, l := range lines {
		if len(l) != len(lines[0]) {
			t.Errorf("line %q has another width than %q", l, lines[0])
		}
	}
	for _, want := range []string{"block hit rate", "0.287", "0.812", "12.3", "1.10", "5719 of 5719", "-"} {
		if !strings.Contains(table, want) {
			t.Errorf("table lacks %q:\n%s", want, table)
		}
	}
	for _, want := range []string{
		"errors: 719 not sent, 10 status 503", "first error: status 503: no worker is up",
		"12 requests waited for the bound in flight, and left up to 3.2 s late", "4 answers reported no usage",
		"counted 160 prompt tokens where the trace has 150", "named no workers",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
	if strings.Contains(text, "A: ") {
		t.Errorf("a run without fault has notes:\n%s", text)
	}
}

func TestWriteJSON(t *testing.T) {
	var out bytes.Buffer
	if err := testReport().WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	var got map[string]any
	if err := json.Unmarshal(lines[0], &got); err != nil {
		t.Fatal(err)
	}
	ttft, _ := got["ttft_seconds"].(map[string]any)
	if got["model"] != "A" || got["block_hit_rate"] != .2871 || got["work_busiest_over_mean"] != 1.1 ||
		ttft["p90"] != 2.3 || ttft["mean"] != .8123 {
		t.Errorf("got %s", lines[0])
	}
}
