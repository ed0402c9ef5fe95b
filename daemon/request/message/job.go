package message

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/session"
)

// A job is whatever a POST under /v1 makes at one worker and a client asks for later by its id: a video, a file, a
// batch. It is bound to its worker as a stored response is. The router knows no list of such APIs: new ones work at
// once.

// finished are the endpoints of kind Other whose answer is complete: an id in it cannot be queried later.
var finished = map[string]bool{"/v1/audio/transcriptions": true, "/v1/audio/translations": true,
	"/v1/audio/speech": true, "/v1/images/generations": true, "/v1/images/edits": true, "/v1/images/variations": true,
	"/v1/moderations": true, "/v1/videos/sync": true, "/v1/models": true}

// jobless begin the paths beside endpoints that generate text, as /v1/chat/completions/render, and those of models.
var jobless = []string{"/v1/chat/", "/v1/completions/", "/v1/responses/", "/v1/models/"}

// groups are the first segments of paths whose second segment is not an id, as in /v1/audio/voices/{id}.
var groups = map[string]bool{"audio": true, "images": true, "messages": true, "fine_tuning": true, "organization": true}

// mayHaveJobs reports whether jobs may be made at a path, or asked for.
func mayHaveJobs(path string) bool {
	if !strings.HasPrefix(path, "/v1/") || finished[path] ||
		prompt.KindOf(http.MethodPost, path) != prompt.Other {
		return false
	}
	for _, prefix := range jobless {
		if strings.HasPrefix(path, prefix) {
			return false
		}
	}
	return true
}

// jobPath returns the id of the job that a path names, "" if it names none. stored: it reads, deletes or cancels the
// job, and so names no model. The id is the first segment behind the API's name that has a digit, as ids have.
// Without one it is the segment after the name, if the method shows that this segment is not an endpoint. For a POST
// it would be one, as in /v1/videos/sync.
func jobPath(method, path string) (id string, stored bool) {
	parts := strings.Split(strings.TrimSuffix(path[len("/v1/"):], "/"), "/")
	at := 0
	for i := len(parts) - 1; i > 0; i-- {
		if strings.ContainsAny(parts[i], "0123456789") {
			at = i
		}
	}
	if at == 0 {
		at = 1
		if groups[parts[0]] {
			at = 2
		}
		if len(parts) <= at || method == http.MethodPost && len(parts) == at+1 {
			return "", false
		}
	}
	id, err := url.PathUnescape(parts[at])
	if err != nil {
		id = parts[at]
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		stored = true
	case http.MethodPost:
		stored = len(parts) == at+2 && parts[at+1] == "cancel"
	}
	return id, stored && plainID(parts[at])
}

// plainID reports whether a segment is an id and nothing else by every reader.
func plainID(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) && s[i] != '.' {
			return false
		}
	}
	return s != ""
}

// EndsIn reports whether a path ends in that id, so that a DELETE deletes what it names and no part of it.
func EndsIn(path, id string) bool {
	return id != "" && strings.HasSuffix(strings.TrimSuffix(path, "/"), "/"+id)
}

// IsJSON reports whether a body is an object in JSON, or seems to begin as one.
func IsJSON(in *Inbound) bool {
	return bytes.HasPrefix(bytes.TrimLeft(in.Body, " \t\r\n\xef\xbb\xbf"), []byte("{"))
}

// Owned returns the name of a job for all keys; owner is the key that binds it, "" in a look-up. Where there are keys
// it is bound beside the key's own name: so a job of another key differs from one that is not bound, which a worker
// may still know.
func Owned(id, owner string) session.Name {
	return session.Name{Kind: session.Response, Tenant: "\x00", Owner: owner, ID: id}
}
