package cli

import (
	"path/filepath"
	"regexp"
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
	has(deployment, `readinessProbe:\n\s+httpGet:\n\s+path: /ready\n\s+port: http`)
	has(deployment, `livenessProbe:\n\s+httpGet:\n\s+path: /health\n\s+port: http`)
	has(deployment, `mountPath: /etc/warmpath-admin\n`)
	has(deployment, `"--config", "/etc/warmpath/warmpath.toml"`)
	if !c.Pools[0].Kubernetes.On() {
		t.Error("no workers are looked for in Kubernetes")
	}
}
