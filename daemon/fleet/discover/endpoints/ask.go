package endpoints

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Bounds of one answer.
const (
	maxList     = 64 << 20
	maxEvent    = 8 << 20 // etcd's own bound of an object is 1.5 MB
	page        = 500     // slices of one part of a list
	listTimeout = 30 * time.Second
	maxSilence  = 3 * time.Minute // bookmarks come once a minute
	watchFor    = 5 * time.Minute // then the server ends the watch; give or take a tenth
)

// refusal is an answer of the API server with an error status.
type refusal struct {
	status int
	text   string
	after  time.Duration // Retry-After
}

func (r *refusal) Error() string {
	remedy := ""
	switch r.status {
	case http.StatusUnauthorized:
		remedy = "; the token of the account is not accepted: has it expired, or is it another cluster's?"
	case http.StatusForbidden:
		remedy = "; give the service account get, list and watch on endpointslices of discovery.k8s.io in the namespace"
	case http.StatusNotFound:
		remedy = "; is api the address of a Kubernetes API server of 1.21 or later?"
	}
	return fmt.Sprintf("endpoints: the API server answers %d: %.300s%s", r.status, r.text, remedy)
}

// isGone reports whether the versions known to us are too old: only a new list helps.
func isGone(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.status == http.StatusGone
}

// needsList reports whether no watch from the known version can succeed: it is gone, or the server rejects it.
func needsList(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && (r.status == http.StatusGone || r.status == http.StatusBadRequest || r.status == http.StatusNotFound)
}

// retryAfter returns how long the server asks clients to wait.
func retryAfter(err error) time.Duration {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.after
	}
	return 0
}

// status is the API's answer to a request that failed.
type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// get asks the API server for the slices with these parameters. The caller closes the body.
func (d *apiServer) get(ctx context.Context, s Service, q url.Values) (*http.Response, error) {
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	client, err := d.open(s)
	if err != nil {
		return nil, err
	}
	q.Set("labelSelector", s.labels())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "warmpath")
	if token, err := s.read("token"); err == nil && len(token) > 0 {
		req.Header.Set("Authorization", "Bearer "+string(token))
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	told := status{Message: string(text)}
	_ = json.Unmarshal(text, &told) // a proxy's page stays as it is
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return nil, &refusal{status: resp.StatusCode, text: told.Message, after: time.Duration(max(0, seconds)) * time.Second}
}

// list returns all slices and the version that a watch starts from.
func (d *apiServer) list(ctx context.Context, s Service) (found map[string]*slice, version string, err error) {
	found = map[string]*slice{}
	for next := ""; ; {
		q := url.Values{"limit": {strconv.Itoa(page)}}
		if next != "" {
			q.Set("continue", next)
		}
		var part struct {
			Metadata meta     `json:"metadata"`
			Items    []*slice `json:"items"`
		}
		resp, err := d.get(ctx, s, q)
		if err != nil {
			return nil, "", err
		}
		err = json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&part)
		resp.Body.Close()
		if err != nil {
			return nil, "", fmt.Errorf("endpoints: the list is cut off or no JSON: %w", err)
		}
		for _, s := range part.Items {
			if s != nil {
				found[s.Metadata.Name] = s
			}
		}
		next = part.Metadata.Continue
		if next == "" || len(found) > maxPods {
			return found, part.Metadata.Version, nil
		}
	}
}

// event is one line of a watch.
type event struct {
	Type   string          `json:"type"` // ADDED | MODIFIED | DELETED | BOOKMARK | ERROR
	Object json.RawMessage `json:"object"`
}

// watching is a watch's start and its callbacks.
type watching struct {
	version string
	lasts   time.Duration
	opened  func() // the server has answered
	took    func(kind string, s *slice)
}

// watch passes on each event after the version until the answer ends. An answer that ends or breaks off is not an
// error: the next request shows whether the server is reachable.
func (d *apiServer) watch(ctx context.Context, s Service, w watching) error {
	ctx, stop := context.WithTimeout(ctx, w.lasts+listTimeout) // a server that never ends it
	defer stop()
	resp, err := d.get(ctx, s, url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"},
		"resourceVersion": {w.version}, "timeoutSeconds": {strconv.Itoa(int(w.lasts.Seconds()))}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	w.opened()
	silent := time.AfterFunc(maxSilence, stop)
	defer silent.Stop()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	for lines.Scan() {
		silent.Reset(maxSilence)
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := w.take(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("endpoints: an event of the watch has more than %d bytes", maxEvent)
	}
	return nil
}

// take passes an event on.
func (w *watching) take(line []byte) error {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil // cut off with the connection
	}
	if e.Type == "ERROR" {
		var told status
		_ = json.Unmarshal(e.Object, &told)
		return &refusal{status: told.Code, text: told.Message}
	}
	one := &slice{}
	if err := json.Unmarshal(e.Object, one); err != nil {
		return fmt.Errorf("endpoints: an event of the watch has no slice: %w", err)
	}
	w.took(e.Type, one)
	return nil
}
