// Package direct makes the clients of net/http with which the router asks workers, and who knows them. Such a client
// asks the server of the URL itself. It uses no proxy, and ignores those of the environment. It follows no redirect, by
// which a worker could have the router ask any server.
package direct

import (
	"net/http"
	"time"
)

// Client makes a client with a time limit for each answer, 0 = none. t is its transport, nil = one of its own.
func Client(t *http.Transport, limit time.Duration) *http.Client {
	if t == nil {
		t = &http.Transport{}
	}
	t.Proxy = nil
	return &http.Client{Transport: t, Timeout: limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
