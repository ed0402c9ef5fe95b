package main

import (
	"bytes"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// byPaths puts the router and its workers below paths.
var byPaths = flag.Bool("paths", false, "let each worker stand below a path of its address, and the router below a "+
	"path that a proxy in front of it does not remove")

const (
	rootPath   = "/llm"
	workerPath = "/models/one"
)

// below returns the URLs by which the router reaches these workers. With -paths each is below a path of another server,
// which passes on what comes there, and answers 404 to all else.
func (h *fleet) below(urls []string) []string {
	if !*byPaths {
		return urls
	}
	all := make([]string, len(urls))
	for i, u := range urls {
		to, err := url.Parse(u)
		if err != nil {
			log.Fatal(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.FlushInterval = -1
		proxy.Transport = &http.Transport{DisableKeepAlives: true} // else it answers 502 where a worker closes one
		proxy.ErrorLog = log.New(io.Discard, "", 0)                // workers that are told to fail
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		// Go's client closes the connection to a worker that answers before the body has been passed on.
		whole := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			proxy.ServeHTTP(w, r)
		})
		s := &http.Server{Handler: http.StripPrefix(workerPath, whole), ErrorLog: proxy.ErrorLog}
		go s.Serve(l)
		h.ended = append(h.ended, func() { s.Close() })
		all[i] = "http://" + l.Addr().String() + workerPath
	}
	return all
}
