package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// versions are the file of a strategy whose versions replace each other: see testdata/modules/version.wat.
type versions struct {
	text  string // of version 0
	path  string
	first int
}

func newVersions(dir, name string, first int) (*versions, error) {
	text, err := os.ReadFile("testdata/modules/version.wat")
	if err != nil {
		return nil, fmt.Errorf("%w; run it where go.mod is", err)
	}
	return &versions{text: string(text), path: filepath.Join(dir, name+".wasm"), first: first}, nil
}

// put makes the n-th version the file's.
func (v *versions) put(n int) error {
	n += v.first
	text := strings.Replace(v.text, "version-00", fmt.Sprintf("version-%02d", n), 1)
	wasm, err := wasmtest.Assemble(strings.Replace(text, "i32 (i32.const 0)", fmt.Sprintf("i32 (i32.const %d)", n), 1))
	if err != nil {
		return err
	}
	return rig.Replace(v.path, string(wasm))
}

// The versions of the canary count from here.
const canaryFrom = 50

// checkSwaps replaces the strategy that serves and a canary again and again, a shadow beside them, and judges the
// access log: the digest of the module, the name of its reason and the worker chosen are those of one version.
func checkSwaps(l *lab) (verdict, error) {
	swaps, apart := pick(l, 8, 20), pick(l, 700, 1400)
	own, err := newVersions(l.dir, "swapped", 0)
	if err != nil {
		return verdict{}, err
	}
	canary, err := newVersions(l.dir, "swapped-canary", canaryFrom)
	if err != nil {
		return verdict{}, err
	}
	for _, v := range []*versions{own, canary} {
		if err := v.put(0); err != nil {
			return verdict{}, err
		}
	}
	nodes, err := l.startNodes(4)
	if err != nil {
		return verdict{}, err
	}
	log := filepath.Join(l.dir, "swaps.log")
	r, err := l.serve(rig.Router{Workers: addrs(nodes), Pool: "strategy = \"mine\"\nhealth_interval = \"300ms\"\n",
		Server: fmt.Sprintf("access_log = %q\nexplain_log = \"all\"\n", log), Strategies: fmt.Sprintf(`
[[pools.canary]]
strategy = "canary"
percent = 30
[[pools.shadow]]
strategy = "prefixaware"
[strategies.mine]
path = %q
[strategies.canary]
path = %q
`, own.path, canary.path)})
	if err != nil {
		return verdict{}, err
	}
	stop := steady(l, r.Addr, 500, "&hold=10")
	for n := range swaps {
		time.Sleep(time.Duration(apart) * time.Millisecond)
		for _, v := range []*versions{own, canary} {
			if err := v.put(n + 1); err != nil {
				return verdict{}, err
			}
		}
		r.Signal(syscall.SIGHUP)
	}
	time.Sleep(time.Duration(apart) * time.Millisecond)
	sent, failed := stop()
	var j *swapJudge
	rig.Eventually(10*time.Second, func() bool { j, err = judgeSwaps(log); return err != nil || int64(j.lines) >= sent })
	if err != nil {
		return verdict{}, err
	}
	shadow := wire.GetFrom(r.Admin, "/api/v1/shadows")
	var seen []struct {
		Dropped uint64
		Shadows []struct{ Seen, Failed uint64 }
	}
	if err := json.Unmarshal(shadow.Body, &seen); err != nil || len(seen) != 1 || len(seen[0].Shadows) != 1 {
		return verdict{}, fmt.Errorf("shadows: %.200s %w", shadow.Body, err)
	}
	s := seen[0].Shadows[0]
	whole := int64(j.lines) >= sent && len(j.versions) == 2*(swaps+1) && int64(s.Seen+seen[0].Dropped) >= sent
	return say(failed == 0 && len(j.wrong) == 0 && whole && s.Failed == 0,
		"%d of %d failed; %d of %d decisions by two versions; %d versions decided, the canary's %.0f %% of the requests; "+
			"the shadow saw %d, %d were dropped%s", failed, sent, len(j.wrong), j.lines, len(j.versions), j.share(), s.Seen,
		seen[0].Dropped, some(j.wrong))
}

// swapJudge compares the versions with the access log.
type swapJudge struct {
	lines, canary int
	sums          map[string]string // of the modules, by the name of their reason
	versions      map[int]int       // how many requests each has decided
	wrong         []string
}

func (j *swapJudge) share() float64 { return 100 * float64(j.canary) / float64(max(1, j.lines)) }

func judgeSwaps(log string) (*swapJudge, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j := &swapJudge{sums: map[string]string{}, versions: map[int]int{}}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var d swapLine
		if json.Unmarshal(in.Bytes(), &d) != nil {
			continue // the last one is being written
		}
		if d.Model != "" {
			j.take(&d)
		}
	}
	return j, in.Err()
}

// swapLine is the fields of a line that show which version decided.
type swapLine struct {
	ID, Model, Strategy, Reason string
	Module                      string `json:"module_sha256"`
	Candidates                  []struct{ Worker, Skipped string }
}

// take checks that a decision is of one version.
func (j *swapJudge) take(d *swapLine) {
	j.lines++
	if d.Strategy == "canary" {
		j.canary++
	}
	var n int
	var rows []string
	for _, c := range d.Candidates {
		if c.Skipped == "" {
			rows = append(rows, c.Worker)
		}
	}
	_, err := fmt.Sscanf(d.Reason, "version-%d", &n)
	if err != nil || len(rows) == 0 {
		j.wrong = append(j.wrong, fmt.Sprintf("; %s: by %s, %q, %d rows", d.ID, d.Strategy, d.Reason, len(rows)))
		return
	}
	j.versions[n]++
	chosen := rows[0]
	slices.Sort(rows)
	was, known := j.sums[d.Reason]
	j.sums[d.Reason] = d.Module
	want := rows[n%len(rows)]
	if chosen != want || known && was != d.Module || (n >= canaryFrom) != (d.Strategy == "canary") {
		j.wrong = append(j.wrong, fmt.Sprintf("; %s: by %s, %q, module %.8s, of which it was %.8s, to %s and not %s", d.ID,
			d.Strategy, d.Reason, d.Module, was, chosen, want))
	}
}
