package vllmsim

import (
	"net/http"
	"strings"
)

// router sends a request to the handler of its path.
type router struct{ *http.ServeMux }

// newRouter returns a router without paths, which answers 404 as Starlette does.
func newRouter() router {
	m := router{http.NewServeMux()}
	m.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeDetail(w, http.StatusNotFound) })
	return m
}

// on registers a path. methods lists those that it takes, as the Allow field does; another gets 405.
func (m router) on(path, methods string, h http.HandlerFunc) {
	m.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(methods, r.Method) {
			w.Header().Set("Allow", methods)
			writeDetail(w, http.StatusMethodNotAllowed)
			return
		}
		h(w, r)
	})
}
