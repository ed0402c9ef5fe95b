package endpoints

import (
	"encoding/json"
	"fmt"
	"slices"
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
		if w.Zone != "" {
			word += "@" + w.Zone
		}
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
	f("", "10.0.0.1:8000=@eu-1a", `{"ports": [{"port": 8000}], "endpoints": [{"addresses": ["10.0.0.1"], "zone": "eu-1a"}]}`)
	f("", "", `{"ports": null, "endpoints": null}`)
	f("", "", `{"ports": [{"port": 8000}], "endpoints": [{"addresses": ["10.0.0.9"], "conditions": {"ready": false}}]}`) // it was forgotten
	f("", "10.0.0.1:8000=! 10.0.0.5:8000=vllm-0",                                                                        // a stateful set's pod that is back under its name
		`{"ports": [{"port": 8000}], "endpoints": [
			{"addresses": ["10.0.0.1"], "conditions": {"ready": true, "terminating": true}, "targetRef": {"kind": "Pod", "name": "vllm-0", "uid": "1"}},
			{"addresses": ["10.0.0.5"], "conditions": {"ready": true}, "targetRef": {"kind": "Pod", "name": "vllm-0", "uid": "7"}}]}`)
}

// TestAReadyEntryWins: of the entries of one address, or of one pod, a ready one wins in whatever order they come.
func TestAReadyEntryWins(t *testing.T) {
	entry := func(address, pod, condition string) string {
		return fmt.Sprintf(`{"addresses": [%q], "conditions": {%s}, "targetRef": {"kind": "Pod", "name": %q, "uid": %q}}`,
			address, condition, pod, "uid of "+pod)
	}
	const (
		ready = `"ready": true`
		going = `"ready": false, "serving": false, "terminating": true`
		stale = `"ready": false`
	)
	f := func(want, family string, apart bool, entries ...string) {
		t.Helper()
		for range 2 { // both orders
			all := map[string]*slice{}
			if apart {
				for i, e := range entries {
					all[fmt.Sprint(i)] = sliceOf(t, fmt.Sprintf(`{"metadata": {"name": "s%d"}, "ports": [{"port": 8000}], "endpoints": [%s]}`, i, e))
				}
			} else {
				all["s"] = sliceOf(t, `{"ports": [{"port": 8000}], "endpoints": [`+strings.Join(entries, ",")+`]}`)
			}
			if apart && family != "" {
				all["1"].AddressType = family
			}
			known := map[string]bool{"http://10.0.0.1:8000": true, "http://10.0.0.2:8000": true}
			if got := shown(workersOf(all, "", known)); got != want {
				t.Errorf("%s: got %q; want %q", entries, got, want)
			}
			slices.Reverse(entries)
		}
	}
	for _, apart := range []bool{false, true} {
		f("10.0.0.1:8000=new", "", apart, entry("10.0.0.1", "old", going), entry("10.0.0.1", "new", ready))
		f("10.0.0.1:8000=old!", "", apart, entry("10.0.0.1", "old", going), entry("10.0.0.1", "old", stale))
		f("10.0.0.1:8000=a", "", apart, entry("10.0.0.1", "a", stale), entry("10.0.0.1", "a", ready))
		f("10.0.0.2:8000=a", "", apart, entry("10.0.0.1", "a", stale), entry("10.0.0.2", "a", ready)) // it has a new address
	}
}

// TestAPodKeepsItsFamily: a pod of two families is one worker at one address, and goes when both slices say so.
func TestAPodKeepsItsFamily(t *testing.T) {
	f := func(four, six bool, want string) {
		t.Helper()
		all := map[string]*slice{}
		for i, text := range []string{
			fmt.Sprintf(`{"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": %v}, "targetRef": {"uid": "1"}}]}`, four),
			fmt.Sprintf(`{"addressType": "IPv6", "ports": [{"port": 80}], "endpoints": [{"addresses": ["fd00::1"], "conditions": {"ready": %v}, "targetRef": {"uid": "1"}}]}`, six)} {
			all[fmt.Sprint(i)] = sliceOf(t, text)
		}
		known := map[string]bool{"http://10.0.0.1:80": true, "http://[fd00::1]:80": true}
		if got := shown(workersOf(all, "", known)); got != want {
			t.Errorf("%v, %v: %q; want %q", four, six, got, want)
		}
	}
	f(true, true, "10.0.0.1:80=")
	f(false, true, "10.0.0.1:80=")
	f(true, false, "10.0.0.1:80=")
	f(false, false, "10.0.0.1:80=!")
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
