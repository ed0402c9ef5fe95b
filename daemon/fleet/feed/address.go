package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Auto is the value of kv_events that makes the router ask the worker.
const Auto = "auto"

// Origin is a worker's event source in the configuration.
type Origin struct {
	URL    string // of the worker; never logged
	Events string // an address of rank 0, Auto, or "": none, unless the worker dials us
	Replay string // of rank 0; "" = none, or the one that the worker answers
}

// place is where the events of one rank are.
type place struct{ events, replay string }

// placeOf returns where a rank's events are by the configuration.
func (o *Origin) placeOf(rank int) (place, error) {
	events, err := Address(o.Events, o.URL, rank)
	if err != nil {
		return place{}, err
	}
	replay, err := Address(o.Replay, o.URL, rank)
	return place{events, replay}, err
}

// Address puts the worker's host in the place of * in an address of rank 0, and moves the port by the rank.
func Address(at, worker string, rank int) (string, error) {
	rest, isTCP := strings.CutPrefix(at, "tcp://")
	switch {
	case at == "":
		return "", nil
	case !isTCP && rank > 0:
		return at + "_dp" + strconv.Itoa(rank), nil
	case !isTCP:
		return at, nil
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", at, err)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n+rank > 65535 {
		return "", fmt.Errorf("address %q has no port for rank %d", at, rank)
	}
	if isWildcard(host) {
		host = hostOf(worker)
	}
	return "tcp://" + net.JoinHostPort(host, strconv.Itoa(n+rank)), nil
}

func isWildcard(host string) bool {
	return host == "*" || host == "" || host == "0.0.0.0" || host == "::"
}

// listens reports whether an endpoint is one that its worker binds, and does not dial, by its host.
func listens(at string) bool {
	rest, isTCP := strings.CutPrefix(at, "tcp://")
	host, _, err := net.SplitHostPort(rest)
	return isTCP && err == nil && isWildcard(host)
}

func hostOf(worker string) string {
	u, err := url.Parse(worker)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// placeAt returns the host and port that a topic or a worker's URL names, in one spelling, "" if it names none:
// HOST:PORT, with http:// or without, an IPv6 address in brackets, an IPv4 one inside an IPv6 one as itself.
func placeAt(text string) string {
	rest, isHTTP := strings.CutPrefix(text, "http://")
	rest, isHTTPS := strings.CutPrefix(rest, "https://")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 { // a password
		rest = rest[at+1:]
	}
	rest, _, _ = strings.Cut(rest, "/") // a path
	host, port, err := net.SplitHostPort(rest)
	if err != nil && (isHTTP || isHTTPS) {
		host, port = strings.Trim(rest, "[]"), "80"
		if isHTTPS {
			port = "443"
		}
		err = nil
	}
	if n, wrong := strconv.Atoi(port); err != nil || wrong != nil || n < 1 || n > 65535 || host == "" {
		return ""
	}
	return net.JoinHostPort(plainHost(host), port)
}

// plainHost returns a host in one spelling.
func plainHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(host)
}

// rankSource is one rank's entry in the worker's answer at /kv_event_sources.
type rankSource struct {
	Enabled  bool   `json:"enable_kv_cache_events"`
	Endpoint string `json:"endpoint"`
	Replay   string `json:"replay_endpoint"` // null = none
}

// Errors of asking.
var (
	errNotThere = errors.New("the worker has no /kv_event_sources, which vLLM has from 0.31 on: set kv_events of the " +
		"worker to its endpoint")
	errDisabled = errors.New("the worker publishes no KV events: start it with --kv-events-config and " +
		`"enable_kv_cache_events":true`)
)

// maxAnswer bounds the answer: 256 ranks of 300 bytes.
const maxAnswer = 1 << 20

// ask gets from a worker the addresses at which its ranks publish.
func ask(ctx context.Context, client *http.Client, worker string) (map[int]rankSource, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, worker+"/kv_event_sources", nil)
	if err != nil {
		return nil, errors.New("the url of the worker cannot be used") // the error may hold a password
	}
	res, err := client.Do(req)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err
		}
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return nil, errNotThere
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/kv_event_sources answers %s", res.Status)
	}
	var all map[string]rankSource
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&all); err != nil {
		return nil, fmt.Errorf("/kv_event_sources: %w", err)
	}
	ranks := make(map[int]rankSource, len(all))
	for name, s := range all {
		if r, err := strconv.Atoi(name); err == nil && s.Enabled && s.Endpoint != "" {
			ranks[r] = s
		}
	}
	if len(ranks) == 0 {
		return nil, errDisabled
	}
	return ranks, nil
}

// placeAmong returns where the events of a rank are, by the worker's answer. If all ranks name one address, it is the
// first rank's, and the others follow above it.
func placeAmong(ranks map[int]rankSource, o *Origin, rank int) (place, error) {
	s, ok := ranks[rank]
	shift := 0
	if first, both := ranks[0]; !ok || both && rank > 0 && first.Endpoint == s.Endpoint {
		s = first
		shift = rank
	}
	if s.Endpoint == "" {
		return place{}, fmt.Errorf("the worker names no source of its rank %d", rank)
	}
	events, err := Address(s.Endpoint, o.URL, shift)
	if err != nil {
		return place{}, err
	}
	replay, err := Address(s.Replay, o.URL, shift)
	if s.Replay == "" {
		replay, err = Address(o.Replay, o.URL, rank)
	}
	return place{events, replay}, err
}
