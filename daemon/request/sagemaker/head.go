package sagemaker

import "strings"

// Strip reports a field of a request that no worker gets: AWS strips all fields except the API's own. What signs the
// request for AWS would be a foreign key to a worker; what the router answers for itself, the session's id among it,
// would be refused by a worker that knows of no sessions (vLLM: 400). A worker that holds the session gets
// HeaderSession with its own id from the caller, and a stream's Accept is Call.Accept. All else goes on, new fields
// of the API too.
func (c *Call) Strip(name, value string) bool {
	switch {
	case len(name) == len("Authorization") && strings.EqualFold(name, "Authorization"):
		return c.Endpoint != "" || strings.HasPrefix(value, "AWS4-") // on /invocations it may be a key of the worker's own
	case hasPrefix(name, "x-amz-"), hasPrefix(name, "amz-sdk-"):
		return true
	case len(name) == len("Accept") && strings.EqualFold(name, "Accept"):
		return c.Stream
	case !hasPrefix(name, prefix):
		return false
	}
	switch strings.ToLower(name[len(prefix):]) {
	case "session-id", "new-session-id", "closed-session-id", "prefix-aware-id", "accept":
		return true
	}
	return false
}

// StripAnswer reports a field of a worker's answer that the client does not get as it is: the router sets the sessions'
// itself, and a stream's type goes into HeaderContentType.
func (c *Call) StripAnswer(name string) bool {
	if c.Stream && (strings.EqualFold(name, "Content-Type") || strings.EqualFold(name, HeaderContentType)) {
		return true
	}
	if !hasPrefix(name, prefix) {
		return false
	}
	switch strings.ToLower(name[len(prefix):]) {
	case "session-id", "new-session-id", "closed-session-id":
		return true
	}
	return false
}

const prefix = "x-amzn-sagemaker-"

func hasPrefix(name, prefix string) bool {
	return len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
}
