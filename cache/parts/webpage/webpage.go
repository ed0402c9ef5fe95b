// Package webpage distinguishes requests that a web page has a browser send from those of programs. A page may send
// them to any port that its reader's machine reaches, also under a name of its own that it points there (DNS
// rebinding), and the ports for workers have no password.
package webpage

import "strings"

// Header returns the first value of a request's field. It returns "" if there is none.
type Header interface{ Get(name string) string }

// Sends reports whether a web page sends a request. The browser adds Origin and Sec-Fetch-Site where no page can leave
// them out. Of a page whose own name points here it adds neither to a GET, but its User-Agent begins as that of every
// browser does.
func Sends(h Header) bool {
	return h.Get("Origin") != "" || h.Get("Sec-Fetch-Site") != "" || strings.HasPrefix(h.Get("User-Agent"), "Mozilla/")
}

// Refusal is what such a request is answered with, at a port for workers.
const Refusal = "this port is for workers: it takes no request of a web page"
