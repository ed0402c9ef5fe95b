package bugs

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/kubetest"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// Two pods have one address: the network gave it away again while the old one is still listed. The ready one serves.
var places = []wallCase{
	{"a-ready-pod-listed-after-a-terminating-one-serves", sameAddress(pods("s1", old, fresh))},
	{"a-ready-pod-listed-before-a-terminating-one-serves", sameAddress(pods("s1", fresh, old))},
	{"a-ready-pod-listed-after-two-that-end-serves", sameAddress(pods("s1", old, kubetest.Pod{Name: "older", Address: local,
		Terminating: true}, fresh))},
	{"a-stale-copy-in-a-slice-that-sorts-first-is-no-drain", sameAddress(
		pods("a0", kubetest.Pod{Name: "new", Address: local}), pods("s1", fresh))},
	{"a-pod-that-is-not-ready-beside-a-ready-one-is-no-drain", sameAddress(
		pods("s1", kubetest.Pod{Name: "slow", Address: local}, fresh))},
	{"a-terminating-pod-alone-gets-no-request", terminating},
}

const local = "127.0.0.1"

var (
	old   = kubetest.Pod{Name: "old", Address: local, Terminating: true}
	fresh = kubetest.Pod{Name: "new", Address: local, Ready: true}
)

// slice is a slice of the service and its pods.
type slice struct {
	name string
	pods []kubetest.Pod
}

func pods(name string, all ...kubetest.Pod) slice { return slice{name, all} }

// kubernetes starts an API server and a router that asks it. Slow start is off, and health is checked often.
func (l *lab) kubernetes(first kubetest.Pod) (r *router, set func(...slice)) {
	e := l.engine(&engine.Engine{})
	_, text, _ := net.SplitHostPort(e.Addr())
	port, _ := strconv.Atoi(text)
	api := kubetest.Start(l.t)
	set = func(all ...slice) {
		for _, s := range all {
			api.Set("vllm", s.name, port, s.pods...)
		}
	}
	set(pods("s1", first))
	r = l.routerWith(rig.Router{Pool: "name = \"p\"\nslow_start = \"0s\"\nhealth_interval = \"200ms\"\n",
		Strategies: fmt.Sprintf("[pools.kubernetes]\nservice = \"vllm\"\napi = %q\naccount = %q\n", api.URL, api.Account)})
	return r, set
}

func sameAddress(slices ...slice) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		r, set := l.kubernetes(kubetest.Pod{Name: "old", Address: local, Ready: true})
		if a := r.chat("first"); !served(a) {
			return "the first pod does not serve: " + a.String(), false
		}
		set(slices...)
		time.Sleep(1500 * time.Millisecond)
		a := r.chat("second")
		return fmt.Sprintf("answered %d", a.Status), served(a)
	}
}

// terminating is a control: the only pod ends, so nobody serves.
func terminating(l *lab) (string, bool) {
	r, set := l.kubernetes(kubetest.Pod{Name: "old", Address: local, Ready: true})
	set(pods("s1", old))
	time.Sleep(1500 * time.Millisecond)
	a := r.chat("second")
	return fmt.Sprintf("answered %d", a.Status), a.Status == 503 && strings.Contains(string(a.Body), "error")
}
