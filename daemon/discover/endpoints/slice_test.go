package endpoints

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sliceOf parses a slice as the API server writes it.
func sliceOf(t *testing.T, text string) *slice {
	t.Helper()
	s := &slice{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func shown(all []Worker) string {
	var words []string
	for _, w := range all {
		word := strings.TrimPrefix(w.URL, "http://") + "=" + w.Pod
		if w.Leaving {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestWorkersOfSlices(t *testing.T) {
	ready := map[string]bool{}
	f := func(port, want string, slices ...string) {
		t.Helper()
		all := map[string]*slice{}
		for i, text := range slices {
			s := sliceOf(t, text)
			s.Metadata.Name = fmt.Sprint("s", i)
			all[s.Metadata.Name] = s
		}
		if got := shown(workersOf(all, port, ready)); got != want {
			t.Errorf("got %q; want %q", got, want)
		}
	}
	const two = `{"addressType": "IPv4", "ports": [{"name": "http", "port": 8000}, {"name": "metrics", "port": 9000}], "endpoints": [
		{"addresses": ["10.0.0.1"], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": "a", "uid": "1"}},
		{"addresses": ["10.0.0.2"], "conditions": {}, "targetRef": {"kind": "Pod", "name": "b", "uid": "2"}}]}`
	f("", "10.0.0.1:8000=a 10.0.0.2:8000=b", two)
	f("metrics", "10.0.0.1:9000=a 10.0.0.2:9000=b", two)
	f("9000", "10.0.0.1:9000=a 10.0.0.2:9000=b", two)
	f("grpc", "", two)
	f("", "10.0.0.1:8000=a 10.0.0.2:8000=b", two, // the other family of the same pods
		`{"addressType": "IPv6", "ports": [{"port": 8000}], "endpoints": [
			{"addresses": ["fd00::1"], "targetRef": {"kind": "Pod", "name": "a", "uid": "1"}}]}`)
	f("", "10.0.0.1:8000=a! 10.0.0.2:8000=b!", // terminating; and no longer ready
		`{"ports": [{"port": 8000}], "endpoints": [
			{"addresses": ["10.0.0.1"], "conditions": {"ready": false, "serving": true, "terminating": true},
				"targetRef": {"kind": "Pod", "name": "a", "uid": "1"}},
			{"addresses": ["10.0.0.2"], "conditions": {"ready": false}, "targetRef": {"kind": "Pod", "name": "b", "uid": "2"}},
			{"addresses": ["10.0.0.3"], "conditions": {"ready": false}, "targetRef": {"kind": "Pod", "name": "c", "uid": "3"}}]}`)
	f("", "10.0.0.9:8000=", `{"ports": [{"port": 8000}], "endpoints": [{"addresses": ["10.0.0.9"]}, {"addresses": []},
		{"addresses": ["0.0.0.0"]}, {"addresses": ["host.example.com"]}, {"addresses": ["224.0.0.1"]}]}`)
	f("", "", `{"ports": null, "endpoints": null}`)
	f("", "", `{"ports": [{"port": 8000}], "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": false}}]}`) // it was forgotten
	f("", "10.0.0.1:8000=! 10.0.0.5:8000=vllm-0",                                                                        // a stateful set's pod that is back under its name
		`{"ports": [{"port": 8000}], "endpoints": [
			{"addresses": ["10.0.0.1"], "conditions": {"ready": true, "terminating": true}, "targetRef": {"kind": "Pod", "name": "vllm-0", "uid": "1"}},
			{"addresses": ["10.0.0.5"], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": "vllm-0", "uid": "7"}}]}`)
}

func TestWorkersHaveABound(t *testing.T) {
	s := sliceOf(t, `{"ports": [{"port": 8000}]}`)
	for i := range maxPods + 10 {
		s.Endpoints = append(s.Endpoints, endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250+1)}})
	}
	if n := len(workersOf(map[string]*slice{"s": s}, "", map[string]bool{})); n != maxPods {
		t.Errorf("%d workers; want %d", n, maxPods)
	}
}
