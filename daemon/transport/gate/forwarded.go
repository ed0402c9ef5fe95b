package gate

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net"
	"strings"
)

// Forwarded returns the fields that describe the way of a request to its worker: the values of X-Forwarded-For,
// -Proto and -Host. get returns the request's own value of a field, several lines joined by ", ", or "". remote is
// the client's address with or without a port, proto is http or https, host is the request's Host.
//
// X-Forwarded-For is appended to, as nginx's $proxy_add_x_forwarded_for does: its last entry is always the peer that
// we saw, and what stands before it is that peer's claim. Proto and Host are kept from a proxy in front, which alone
// knows that TLS ended at it; a client without a proxy can set them too. That is harmless: neither we nor vLLM decide
// anything by them, and they are kept only if they are well-formed.
func Forwarded(get func(string) string, remote, proto, host string) (xff, xproto, xhost string) {
	xff = peer(remote)
	if before := get("X-Forwarded-For"); before != "" && printable(before) {
		xff = before + ", " + xff
	}
	xproto = proto
	if p := strings.ToLower(get("X-Forwarded-Proto")); p == "http" || p == "https" {
		xproto = p
	}
	xhost = host
	if h := get("X-Forwarded-Host"); hostLike(h) {
		xhost = h
	}
	return xff, xproto, xhost
}

// peer returns the address without its port and zone, IPv6 without brackets: what nginx writes.
func peer(remote string) string {
	if i := strings.IndexByte(remote, ':'); i >= 0 && (remote[0] == '[' || i == strings.LastIndexByte(remote, ':')) {
		if host, _, err := net.SplitHostPort(remote); err == nil {
			remote = host
		}
	}
	remote, _, _ = strings.Cut(remote, "%")
	return remote
}

// hostLike recognizes HOST[:PORT] and [IPV6]:PORT by their bytes.
func hostLike(s string) bool {
	return s != "" && len(s) <= 255 && only(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]")
}

// RequestID passes on an id that a client or a proxy gave, if it is 1 to 128 of A-Z, a-z, 0-9, dot, underscore, colon
// and dash; else it makes one of 128 random bits in hex, as vLLM does. vLLM builds the id of a completion from it and
// sends it back in headers and logs, so what could break out of any of these is replaced, not passed on.
func RequestID(given string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"
	if given != "" && len(given) <= 128 && only(given, safe) {
		return given
	}
	var id [16]byte // unique, no secret: the runtime's generator takes no system call
	binary.LittleEndian.PutUint64(id[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	var text [2 * len(id)]byte
	hex.Encode(text[:], id[:])
	return string(text[:])
}

func only(s, set string) bool { return strings.Trim(s, set) == "" }

// printable reports whether s can stand in a header field as it is: ASCII without control characters.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
