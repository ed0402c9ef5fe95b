package conf

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Kubernetes selects the pods that are workers of a pool, beside those of other sources.
type Kubernetes struct {
	Service   string `toml:"service"`   // whose ready pods are workers; "" = none, or those of Selector
	Selector  string `toml:"selector"`  // labels of EndpointSlices, instead of Service
	Namespace string `toml:"namespace"` // "" = the pod's own
	Port      string `toml:"port"`      // of the pods, by name or number; "" = the first that the service names
	API       string `toml:"api"`       // "" = the cluster's that this process is a pod of
	Account   string `toml:"account"`   // folder of token, ca.crt and namespace; "" = where kubelet puts it
}

// On reports whether there is a service to follow.
func (k *Kubernetes) On() bool { return k.Service != "" || k.Selector != "" }

// Bounds of Kubernetes' own.
const (
	maxSelector = 1024
	maxK8sName  = 63
)

// checkKubernetes checks what does not need the API server.
func checkKubernetes(r *report, path string, k *Kubernetes) {
	for key, value := range map[string]string{"service": k.Service, "namespace": k.Namespace} {
		if value != "" && !isK8sName(value) {
			r.add(child(path, key), fmt.Sprintf("%.80q is no name of Kubernetes", value),
				"write up to 63 of a-z, 0-9 and dash, without the namespace or a port")
		}
	}
	n, err := strconv.Atoi(k.Port)
	if k.Port != "" && (err == nil && !within(n, 1, 65535) || !isK8sName(k.Port)) {
		r.add(child(path, "port"), fmt.Sprintf("%.80q is no port", k.Port),
			`write its name, as "http", or its number, as "8000"`)
	}
	switch {
	case k.Service != "" && k.Selector != "":
		r.add(child(path, "selector"), "it stands beside service", "keep one of them")
	case len(k.Selector) > maxSelector || strings.ContainsAny(k.Selector, "\r\n\x00"):
		r.add(child(path, "selector"), "it is no selector", `write as kubectl's -l: "app=vllm,tier=large"`)
	case !k.On() && *k != Kubernetes{}:
		r.add(path, "there is neither service nor selector", `write service = "NAME", or leave the table out`)
	}
	if k.API != "" {
		checkAPI(r, child(path, "api"), k.API)
	}
}

// checkAPI checks the address of an API server. The token goes there: without TLS only to this machine.
func checkAPI(r *report, path, s string) {
	const want = `https://HOST:PORT, or "http://127.0.0.1:8001" of kubectl proxy`
	u := checkHTTPURL(r, path, s, want)
	if u == nil {
		return
	}
	if u.Scheme == "http" && !isLocal(u) {
		r.add(path, fmt.Sprintf("%q would carry the token without TLS", s), "write "+want)
	}
}

func isLocal(u *url.URL) bool {
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

func isK8sName(s string) bool {
	return len(s) <= maxK8sName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" &&
		!strings.HasPrefix(s, "-") && !strings.HasSuffix(s, "-")
}
