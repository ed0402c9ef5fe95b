package endpoints_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/lab/kubetest"
)

// kubectl runs kubectl on the API server of testdata/real/kube, as its administrator, with object as its input.
func kubectl(t *testing.T, object any, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "kubectl", append(strings.Fields(os.Getenv("WARMPATH_REALKUBE_ADMIN")), args...)...)
	if object != nil {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = strings.NewReader(string(text))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestRealServer follows a service of a real API server, which testdata/real/kube/run.sh starts.
func TestRealServer(t *testing.T) {
	api := os.Getenv("WARMPATH_REALKUBE")
	if api == "" {
		t.Skip("testdata/real/kube/run.sh runs it")
	}
	account := os.Getenv("WARMPATH_REALKUBE_ACCOUNT")
	k := &kubetest.Server{URL: api, Account: account} // nothing of it runs
	set := func(slice string, pods ...kubetest.Pod) {
		object := kubetest.Object("vllm", slice, 8000, 0, pods...)
		meta, _ := object["metadata"].(map[string]any)
		delete(meta, "resourceVersion")
		kubectl(t, object, "apply", "-f", "-")
	}
	set("vllm-1", pod("a", "10.0.0.1"))
	set("vllm-2", pod("b", "10.0.0.2"))
	f := follow(t, k)
	if got := f.workers(); got != "1:8000=a 2:8000=b" {
		t.Fatalf("after Follow: %q; log:\n%s", got, f.log)
	}
	set("vllm-1", kubetest.Pod{Name: "a", Address: "10.0.0.1", Terminating: true}, pod("c", "10.0.0.3"))
	f.expect("1:8000=a! 2:8000=b 3:8000=c")
	kubectl(t, nil, "delete", "endpointslice", "vllm-2")
	f.expect("1:8000=a! 3:8000=c")

	// The server goes and comes back, without its watch cache: the version that was seen last may be too old for it.
	restart := exec.Command("bash", cmp.Or(os.Getenv("WARMPATH_REALKUBE_RESTART"), "false"), "stop")
	if out, err := restart.CombinedOutput(); err != nil {
		t.Fatalf("stop: %v\n%s", err, out)
	}
	f.eventually("a warning", func() bool { return f.log.Count("those it gave before stay") == 1 })
	if got := f.workers(); got != "1:8000=a! 3:8000=c" {
		t.Errorf("without a server: %q", got)
	}
	restart = exec.Command("bash", os.Getenv("WARMPATH_REALKUBE_RESTART"), "start")
	if out, err := restart.CombinedOutput(); err != nil {
		t.Fatalf("start: %v\n%s", err, out)
	}
	f.eventually("a word of the end", func() bool { return f.log.Count("Kubernetes answers again") == 1 })
	set("vllm-1", pod("c", "10.0.0.3"), pod("d", "10.0.0.4"))
	f.expect("3:8000=c 4:8000=d")

	// Another selector of the same slices; then the right to read them is taken away.
	sets := service(k)
	sets.Selector, sets.Name = "kubernetes.io/service-name in (vllm,other)", ""
	f.source.Follow(t.Context(), sets)
	f.expect("3:8000=c 4:8000=d")
	kubectl(t, nil, "delete", "rolebinding", "warmpath")
	f.source.Follow(t.Context(), service(k))
	f.eventually("a remedy", func() bool { return f.log.Count("give the service account get, list and watch") == 1 })
}
