package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
)

// versionFile is where a version of a strategy is put, again and again.
type versionFile struct {
	t    *testing.T
	text string // of version 0
	path string
}

func newVersionFile(t *testing.T, name string) *versionFile {
	t.Helper()
	text, err := os.ReadFile("../testdata/modules/version.wat")
	if err != nil {
		t.Fatal(err)
	}
	return &versionFile{t: t, text: string(text), path: filepath.Join(t.TempDir(), name+".wasm")}
}

// put makes the file's strategy version n.
func (f *versionFile) put(n int) {
	f.t.Helper()
	text := strings.Replace(f.text, "version-00", fmt.Sprintf("version-%02d", n), 1)
	wasm, err := wasmtest.Assemble(strings.Replace(text, "i32 (i32.const 0)", fmt.Sprintf("i32 (i32.const %d)", n), 1))
	if err != nil {
		f.t.Fatal(err)
	}
	write(f.t, f.path+".new", string(wasm))
	if err := os.Rename(f.path+".new", f.path); err != nil {
		f.t.Fatal(err)
	}
}

// decidedBy says what is wrong with a line of the access log whose decision one version of one strategy should have made:
// the module's digest, the name of its reason and the row that it chose are those of one version. sums has the digest that
// goes with each name.
func decidedBy(line map[string]any, first int, sums map[string]string) (version int, wrong string) {
	reason, sum := fmt.Sprint(line["reason"]), fmt.Sprint(line["module_sha256"])
	if _, err := fmt.Sscanf(reason, "version-%d", &version); err != nil {
		return 0, "the reason is " + reason
	}
	if was := sums[reason]; was != "" && was != sum {
		return version, fmt.Sprintf("%s is of module %s, and of %s", reason, was, sum)
	}
	sums[reason] = sum
	var rows []string
	all, _ := line["candidates"].([]any)
	for _, c := range all {
		one, _ := c.(map[string]any)
		if one["skipped"] == nil {
			rows = append(rows, fmt.Sprint(one["worker"]))
		}
	}
	if len(rows) == 0 {
		return version, "no candidates"
	}
	chosen := rows[0]
	slices.Sort(rows)
	if want := rows[version%len(rows)]; chosen != want {
		return version, fmt.Sprintf("%s chose %s of %v; want %s", reason, chosen, rows, want)
	}
	if version < first || version >= first+50 {
		return version, fmt.Sprintf("%v decided as %s", line["strategy"], reason)
	}
	return version, ""
}

// TestOneVersionDecides: while the serving strategy and a canary are replaced under load and a shadow looks on, every
// request is answered, and each decision, with the name of its reason and what the version wants to see, is of one version.
func TestOneVersionDecides(t *testing.T) {
	t.Parallel()
	const swaps, apart = 4, 600 * time.Millisecond
	log := filepath.Join(t.TempDir(), "access.log")
	mine, other := newVersionFile(t, "mine"), newVersionFile(t, "other")
	mine.put(1)
	other.put(51)
	text := withServer(settings("mine", sims(t, 3, vllmsim.Config{}).URLs()...),
		fmt.Sprintf("access_log = %q\nexplain_log = \"all\"", log)) + fmt.Sprintf(`
[[pools.canary]]
strategy = "other"
percent = 50
[[pools.shadow]]
strategy = "prefixaware"
[strategies.mine]
path = %q
[strategies.other]
path = %q
`, mine.path, other.path)
	r := start(t, text, 3)
	var done atomic.Bool
	var asked atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for !done.Load() {
				asked.Add(1)
				if s := r.do("POST", "/v1/completions", `{"model":"sim","prompt":"x","max_tokens":1}`); s.status != 200 {
					t.Errorf("%d %s %v", s.status, s.body, s.err)
				}
				time.Sleep(4 * time.Millisecond)
			}
		})
	}
	for n := range swaps {
		time.Sleep(apart)
		mine.put(n + 2)
		other.put(n + 52)
		if err := r.Reload(); err != nil {
			t.Error(err)
		}
	}
	time.Sleep(apart)
	done.Store(true)
	all.Wait()
	var lines []map[string]any
	eventually(t, "a line for each request", func() bool { lines = logged(t, log); return int64(len(lines)) == asked.Load() })
	sums, versions := map[string]string{}, map[int]int{}
	for _, l := range lines {
		first := 1
		if l["strategy"] == "other" {
			first = 51
		}
		version, wrong := decidedBy(l, first, sums)
		if wrong != "" {
			t.Errorf("request %v: %s", l["id"], wrong)
		}
		versions[version]++
	}
	if len(versions) != 2*(swaps+1) {
		t.Errorf("decisions by version: %v; want %d of each strategy", versions, swaps+1)
	}
}
