package conf

import (
	"fmt"
	"net"
	"net/url"
	pathpkg "path"
	"strconv"
	"strings"
)

// checkAddress checks HOST:PORT of a listener. An empty host means all interfaces.
func checkAddress(r *report, path, s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		if n, perr := strconv.Atoi(port); perr == nil && n >= 0 && n <= 65535 {
			return true
		}
	}
	r.add(path, fmt.Sprintf("%q is no HOST:PORT", s), `write as "127.0.0.1:8080", or ":8080" for all interfaces`)
	return false
}

// overlap reports whether no two sockets can listen at a and b. Port 0 is any free one.
func overlap(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return covers(hostA, hostB) || covers(hostB, hostA)
}

// covers reports whether a socket that listens at host takes what comes to other, on the same port of this machine.
func covers(host, other string) bool {
	switch host {
	case "", "*", other:
		return true
	case "0.0.0.0":
		return !strings.Contains(other, ":") // of IPv4 alone
	case "localhost":
		return other == "127.0.0.1"
	}
	return net.ParseIP(host).IsUnspecified()
}

// loopback reports whether a checked address is reachable from this machine only.
func loopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// checkWorkerURL checks scheme://HOST[:PORT][/PATH] and returns its canonical form, to find duplicates. The client's
// path follows the worker's.
func checkWorkerURL(r *report, path, s string) (canonical string, ok bool) {
	u := checkHTTPURL(r, path, s, "http://HOST:PORT")
	if u == nil {
		return "", false
	}
	switch p := u.EscapedPath(); {
	case p == "/v1" || strings.HasSuffix(p, "/v1"):
		r.add(path, fmt.Sprintf("it has the path %q", p), "leave /v1 out: the client's path, as /v1/models, follows")
		return "", false
	case p != "" && (pathpkg.Clean(p) != p || strings.ContainsAny(p, "%;")):
		r.add(path, fmt.Sprintf("it has the path %q", p),
			`write a plain one, as http://HOST:PORT/models/one, without "..", "//", "%" and ";"`)
		return "", false
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" { // the same process as the address
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port) + u.Path, true
}

// checkMetricsURL checks the full address of a worker's metrics.
func checkMetricsURL(r *report, path, s string) { checkHTTPURL(r, path, s, "http://HOST:PORT/metrics") }

// checkHTTPURL parses and checks what both kinds share. It never shows user info: that may be a password.
func checkHTTPURL(r *report, path, s, want string) *url.URL {
	u, err := url.Parse(s)
	what := ""
	switch {
	case s == "":
		what = "it is missing"
	case err != nil:
		what = "it is no URL"
	case strings.Contains(s, "@"): // also where url.Parse sees no user
		what = "it has a user or password"
	case u.Scheme != "http" && u.Scheme != "https":
		what = fmt.Sprintf("%q is not http or https", s)
	case u.Hostname() == "" || !portOK(u):
		what = fmt.Sprintf("%q has no valid host and port", s)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		what = fmt.Sprintf("%q has a query or fragment", s)
	default:
		return u
	}
	r.add(path, what, "write "+want)
	return nil
}

// portOK accepts an absent port; url.Parse has checked that it is digits.
func portOK(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 1 && n <= 65535
}

// checkDNSName checks NAME:PORT of which every address is a worker.
func checkDNSName(r *report, path, s string) {
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || n < 1 || n > 65535 || !isHost(host) {
		r.add(path, fmt.Sprintf("%.80q is no NAME:PORT", s), `write as "vllm.default.svc:8000", without http://`)
	}
}

// isHost reports whether s can be a name in DNS, or an IPv4 address.
func isHost(s string) bool {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return s != "" && len(s) <= 253 && strings.Trim(s, safe) == ""
}
