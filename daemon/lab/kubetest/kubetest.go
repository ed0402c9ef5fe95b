// Package kubetest is a Kubernetes API server for tests, of EndpointSlices alone: lists in pages, watches with
// bookmarks, a history that is compacted, tokens, and the faults of a real one. testdata/real/kube runs a real one.
package kubetest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// Pod is an endpoint of a slice.
type Pod struct {
	Name, Address      string
	Ready, Terminating bool
}

// Server is the API server. Its methods are safe for concurrent use.
type Server struct {
	URL     string
	Account string // folder of the service account

	t    testing.TB
	http *httptest.Server

	mu      sync.Mutex // guards all below
	version int
	slices  map[string]map[string]any
	history []change
	oldest  int           // versions before it are compacted
	changed chan struct{} // closed at each change
	broken  chan struct{} // closed to end all watches
	token   string
	refuse  int // status for every request; 0 = none
	silent  bool
	lists   int
	watches int
}

// change is one event of a watch.
type change struct {
	version int
	kind    string
	object  any
}

// Start runs a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, version: 100, slices: map[string]map[string]any{}, changed: make(chan struct{}),
		broken: make(chan struct{}), token: "first", Account: t.TempDir()}
	s.http = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.Break()
		s.http.CloseClientConnections()
		s.http.Close()
	})
	s.URL = s.http.URL
	s.WriteAccount("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})))
	s.WriteAccount("token", "first\n")
	s.WriteAccount("namespace", "prod")
	return s
}

// WriteAccount puts a file of the account in place.
func (s *Server) WriteAccount(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.Account, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// Rotate makes token the only one that is accepted.
func (s *Server) Rotate(token string) { s.with(func() { s.token = token }) }

// Refuse answers every request with the status; 0 = no longer.
func (s *Server) Refuse(status int) { s.with(func() { s.refuse = status }) }

// Silence takes requests and answers none, or answers again.
func (s *Server) Silence(on bool) { s.with(func() { s.silent = on }) }

// Bookmark sends the version to every watch.
func (s *Server) Bookmark() {
	s.with(func() {
		s.version++
		s.add("BOOKMARK", map[string]any{"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1",
			"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "endpoints": nil, "ports": nil})
	})
}

// Compact forgets all changes up to now.
func (s *Server) Compact() {
	s.with(func() { s.oldest = s.version + 1; s.history = nil; s.version += 10 })
}

// Break cuts all watches.
func (s *Server) Break() { s.with(func() { close(s.broken); s.broken = make(chan struct{}) }) }

// Asked returns how many lists and watches there were.
func (s *Server) Asked() (lists, watches int) {
	s.with(func() { lists, watches = s.lists, s.watches })
	return lists, watches
}

// Fail sends an event of an error to all watches, as a server does whose watch cache is behind.
func (s *Server) Fail(code int) {
	s.with(func() {
		s.version++
		s.add("ERROR", map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
			"reason": "Expired", "message": "too old resource version: 100 (200)"})
	})
}

// Set makes a slice of the service out of these pods; without pods it deletes the slice.
func (s *Server) Set(service, slice string, port int, pods ...Pod) {
	s.with(func() {
		s.version++
		_, known := s.slices[slice]
		if len(pods) == 0 {
			gone := s.slices[slice]
			delete(s.slices, slice)
			s.add("DELETED", gone)
			return
		}
		object := Object(service, slice, port, s.version, pods...)
		s.slices[slice] = object
		kind := "ADDED"
		if known {
			kind = "MODIFIED"
		}
		s.add(kind, object)
	})
}

// Object is a slice as an API server sends it.
func Object(service, slice string, port, version int, pods ...Pod) map[string]any {
	endpoints := []any{}
	for _, p := range pods {
		endpoints = append(endpoints, map[string]any{
			"addresses":  []string{p.Address},
			"conditions": map[string]bool{"ready": p.Ready, "serving": p.Ready, "terminating": p.Terminating},
			"nodeName":   "node-1", "zone": "a",
			"targetRef": map[string]string{"kind": "Pod", "namespace": "prod", "name": p.Name, "uid": "uid-" + p.Name},
		})
	}
	return map[string]any{
		"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "addressType": "IPv4", "endpoints": endpoints,
		"metadata": map[string]any{"name": slice, "namespace": "prod", "resourceVersion": strconv.Itoa(version),
			"labels": map[string]string{"kubernetes.io/service-name": service}},
		"ports": []any{map[string]any{"name": "http", "port": port, "protocol": "TCP"}},
	}
}

func (s *Server) with(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// add appends to the history and wakes the watches. The caller holds s.mu.
func (s *Server) add(kind string, object any) {
	s.history = append(s.history, change{s.version, kind, object})
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Server) serve(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	watch := q.Get("watch") != ""
	s.mu.Lock()
	if watch {
		s.watches++
	} else {
		s.lists++
	}
	refuse, silent, token, broken := s.refuse, s.silent, s.token, s.broken
	s.mu.Unlock()
	switch {
	case silent:
		select {
		case <-r.Context().Done():
		case <-broken:
		}
	case refuse != 0:
		fail(rw, refuse, "endpointslices.discovery.k8s.io is forbidden: refused by the test")
	case r.Header.Get("Authorization") != "Bearer "+token:
		fail(rw, http.StatusUnauthorized, "Unauthorized")
	case r.URL.Path != "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices":
		fail(rw, http.StatusNotFound, "the server could not find the requested resource")
	case watch:
		s.watch(rw, r, broken)
	default:
		s.list(rw, r)
	}
}

// fail answers as the API server does.
func fail(rw http.ResponseWriter, code int, text string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{},
		"status": "Failure", "message": text, "reason": http.StatusText(code), "code": code})
}

// selects reports whether the selector, of one label, fits the object.
func selects(object any, selector string) bool {
	o, _ := object.(map[string]any)
	m, _ := o["metadata"].(map[string]any)
	labels, _ := m["labels"].(map[string]string)
	return labels == nil || "kubernetes.io/service-name="+labels["kubernetes.io/service-name"] == selector
}

// list answers one slice a page, which makes every list of two a paged one.
func (s *Server) list(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	after := q.Get("continue")
	names := []string{}
	for name, object := range s.slices {
		if name > after && selects(object, q.Get("labelSelector")) {
			names = append(names, name)
		}
	}
	meta := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	items := []any{}
	first := ""
	for _, name := range names {
		if first == "" || name < first {
			first = name
		}
	}
	if first != "" {
		items = append(items, s.slices[first])
	}
	if len(names) > 1 {
		meta["continue"] = first
	}
	_ = json.NewEncoder(rw).Encode(map[string]any{"kind": "EndpointSliceList", "apiVersion": "discovery.k8s.io/v1",
		"metadata": meta, "items": items})
}

func (s *Server) watch(rw http.ResponseWriter, r *http.Request, broken <-chan struct{}) {
	since, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	q := r.URL.Query()
	if err != nil || q.Get("allowWatchBookmarks") != "true" || q.Get("timeoutSeconds") == "" {
		fail(rw, http.StatusBadRequest, fmt.Sprintf("the test's server wants all parameters: %s", r.URL.RawQuery))
		return
	}
	s.mu.Lock()
	if since+1 < s.oldest {
		s.mu.Unlock()
		fail(rw, http.StatusGone, "too old resource version")
		return
	}
	s.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(rw)
	_ = flush.Flush()
	for sent := since; ; {
		s.mu.Lock()
		news, changed := s.history, s.changed
		s.mu.Unlock()
		for _, c := range news {
			if c.version > sent && selects(c.object, r.URL.Query().Get("labelSelector")) {
				_ = json.NewEncoder(rw).Encode(map[string]any{"type": c.kind, "object": c.object})
				sent = c.version
			}
		}
		_ = flush.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-broken:
			panic(http.ErrAbortHandler) // cut in the middle, as by a server that is killed
		case <-changed:
		}
	}
}
