package cli

import (
	"math"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
)

const manifests = "../../deploy/kubernetes"

// TestManifestsAgreeWithTheirFile compares the Deployment and the Service with the warmpath.toml beside them.
// testdata/real/kube checks with a real API server that a cluster accepts them; testdata/release/chart, that kustomize builds
// them.
func TestManifestsAgreeWithTheirFile(t *testing.T) {
	dir := t.TempDir()
	text := read(t, filepath.Join(manifests, "warmpath.toml"))
	write(t, filepath.Join(dir, "token"), "0123456789abcdef0123456789abcdef\n")
	text = strings.ReplaceAll(text, "/etc/warmpath-admin/token", filepath.Join(dir, "token"))
	write(t, filepath.Join(dir, "warmpath.toml"), text)
	c, err := conf.Load(filepath.Join(dir, "warmpath.toml"))
	if err != nil {
		t.Fatal(err)
	}
	deployment := read(t, filepath.Join(manifests, "deployment.yaml"))
	service := read(t, filepath.Join(manifests, "service.yaml"))
	has := func(where, pattern string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindStringSubmatch(where)
		if found == nil {
			t.Fatalf("there is no %s", pattern)
		}
		return found[len(found)-1]
	}
	grace, _ := strconv.Atoi(has(deployment, `terminationGracePeriodSeconds: (\d+)`))
	if need := c.Server.DrainDelay + c.Server.DrainTimeout; float64(grace) <= need.Seconds() || c.Server.DrainDelay == 0 {
		t.Errorf("terminationGracePeriodSeconds is %d; drain_delay %s and drain_timeout %s need more", grace,
			c.Server.DrainDelay, c.Server.DrainTimeout)
	}
	for name, address := range map[string]string{"http": c.Server.Listen, "admin": c.Server.Admin} {
		if got := has(deployment, `- name: `+name+`\n\s+containerPort: (\d+)`); ":"+got != address {
			t.Errorf("port %s is %s; the file listens on %s", name, got, address)
		}
		has(service, `targetPort: `+name)
	}
	has(deployment, `readinessProbe:.*\n\s+httpGet:\n\s+path: /ready\n\s+port: http`)
	has(deployment, `livenessProbe:.*\n\s+httpGet:\n\s+path: /health\n\s+port: http`)
	has(deployment, `mountPath: /etc/warmpath-admin\n`)
	has(deployment, `"--config", "/etc/warmpath/warmpath.toml"`)
	if !c.Pools[0].Kubernetes.On() {
		t.Error("no workers are looked for in Kubernetes")
	}
}

// TestConfigsOfTheChart reads the configuration in each file of values that the chart's tests render. The files that it names are
// in no pod here.
func TestConfigsOfTheChart(t *testing.T) {
	const values = "../../testdata/release/chart/values"
	files, err := filepath.Glob(values + "/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	t.Setenv("TEAM_A_KEY", "0123456789abcdef")
	t.Setenv("TEAM_B_KEY", "fedcba9876543210")
	elsewhere := regexp.MustCompile(`no such file|there is no folder|there is no strategy "nearest"`)
	for _, file := range append(files, "../../deploy/helm/warmpath/values.yaml") {
		_, config, found := strings.Cut(read(t, file), "\nconfig: |\n")
		if !found {
			continue
		}
		config = strings.ReplaceAll("\n"+config, "\n  ", "\n")
		if end := regexp.MustCompile(`(?m)^[a-zA-Z]+: ?`).FindStringIndex(config); end != nil {
			config = config[:end[0]]
		}
		_, err := conf.Parse([]byte(config), filepath.Join(t.TempDir(), "warmpath.toml"))
		if err == nil {
			continue
		}
		for line := range strings.Lines(err.Error()) {
			if !elsewhere.MatchString(line) {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}

// TestLimitHeap: what GOMEMLIMIT says is for the whole process, the KV cache too.
func TestLimitHeap(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	const gib = 1 << 30
	for _, c := range []struct {
		limit, want int64
		cache       conf.KVCache
	}{
		{math.MaxInt64, math.MaxInt64, conf.KVCache{RESP: ":6380", MaxBytes: 4 * gib}},
		{10 * gib, 9 * gib, conf.KVCache{MaxBytes: 4 * gib}},
		{14 * gib, 9 * gib, conf.KVCache{RESP: ":6380", MaxBytes: 4 * gib}},
		{10 * gib, 9 * gib, conf.KVCache{RESP: ":6380", MaxBytes: 64 * gib}}, // the heap alone was meant
	} {
		debug.SetMemoryLimit(c.limit)
		limitHeap(&c.cache)
		if got := debug.SetMemoryLimit(-1); got < c.want-10 || got > c.want {
			t.Errorf("of %d with %+v: %d, want %d", c.limit, c.cache.MaxBytes, got, c.want)
		}
	}
}
