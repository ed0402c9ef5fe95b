package main

import (
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// attackBrowsers tries what web pages can have a browser send.
func attackBrowsers(l *lab, d *rig.Proc) {
	const origin = "Origin: https://chat.example.com"
	l.way("preflight", func() (bool, string) {
		a := wire.Once(d.Addr, wire.Request("OPTIONS", chatPath, "", origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: authorization,content-type"))
		n := strings.Count(a.Text, "access-control-allow-origin:")
		return n == 1, fmt.Sprintf("%d with %d Access-Control-Allow-Origin", a.Status, n)
	})
	l.way("cross-origin-answer", func() (bool, string) {
		a := wire.Once(d.Addr, wire.Request("POST", chatPath, chat("sim"), jsonType, origin))
		n := strings.Count(a.Text, "access-control-allow-origin:")
		_, exposed, _ := strings.Cut(a.Text, "access-control-expose-headers:")
		exposed, _, _ = strings.Cut(exposed, "\r\n")
		return n == 1 && strings.Contains(exposed, "x-request-id") && strings.Contains(exposed, "x-warmpath-"),
			fmt.Sprintf("%d with %d Access-Control-Allow-Origin, exposed:%s", a.Status, n, exposed)
	})
}

// attackAdmin tries to read and to change the operator's pages as a web page can, by a name that was bound to loopback
// after the browser loaded it.
func attackAdmin(l *lab, d *rig.Proc) {
	const rebound = "Host: evil.example"
	l.way("admin-rebound-reads", func() (bool, string) {
		var open []string
		for _, p := range []string{"/api/v1/pools", "/api/v1/sessions", "/metrics", "/debug/pprof/cmdline"} {
			if a := wire.Once(d.Admin, wire.Request("GET", p, "", rebound)); a.Status == 200 {
				open = append(open, p)
			}
		}
		own := wire.Once(d.Admin, wire.Request("GET", "/api/v1/pools", "", "Host: "+d.Admin))
		return len(open) == 0 && own.Status == 200, fmt.Sprintf("by another name 200: %q; by its own name %d", open,
			own.Status)
	})
	l.way("admin-profiles", func() (bool, string) {
		a := wire.Once(d.Admin, wire.Request("GET", "/debug/pprof/cmdline", "", "Host: "+d.Admin))
		return a.Status != 200, "without token or switch: " + a.String()
	})
	l.way("admin-foreign-writes", func() (bool, string) {
		own := "Host: " + d.Admin
		drain := "/api/v1/pools/pool1/workers/w0/drain"
		var open []string
		for _, f := range [][]string{
			{own, "Origin: https://evil.example"}, {own, "Origin: null"}, {rebound}, {own, "Origin: http://" + d.Addr},
		} {
			if a := wire.Once(d.Admin, wire.Request("POST", drain, "", f...)); a.Status != 403 {
				open = append(open, fmt.Sprintf("%q: %d", f, a.Status))
			}
		}
		control := wire.Once(d.Admin, wire.Request("POST", drain, "", own))
		wire.Once(d.Admin, wire.Request("DELETE", drain, "", own))
		return len(open) == 0 && control.Status == 200, fmt.Sprintf("not refused: %q; without Origin %d", open,
			control.Status)
	})
}
