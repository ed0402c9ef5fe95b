package operator

import (
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// ownPagesOnly keeps other sites' web pages off the operator's listener, as on loopback there is no token against them.
// A page can make a name of its own point here (DNS rebinding), and the browser then takes this server for the page's
// own. So without a token every request must name the server by an address, as localhost, or as server.admin does: only
// their owner controls such names. With or without a token, a change must not come from a page of another origin, and
// what such a page embeds, an image of /metrics, costs work for nothing. Its reader may follow a link.
func ownPagesOnly(token bool, listen string) fiber.Handler {
	own, _, _ := net.SplitHostPort(listen)
	return func(c *fiber.Ctx) error {
		called := string(c.Request().Host())
		if !token && !ourName(called, own) {
			return c.Status(fiber.StatusForbidden).JSON(fiber.Map{
				"error": "this listener answers to an IP address, localhost and the name in server.admin; " +
					"call it by one of them, or set server.admin_token_file"})
		}
		origin := c.Get("Origin")
		reads := c.Method() == fiber.MethodGet || c.Method() == fiber.MethodHead
		if isForeign(c) && !(reads && c.Get("Sec-Fetch-Mode") == "navigate") {
			return fiber.ErrForbidden
		}
		if reads || origin == "" || strings.HasSuffix(origin, "://"+called) {
			return c.Next()
		}
		return fiber.ErrForbidden
	}
}

// isForeign reports whether the browser says that another site's page sends the request.
func isForeign(c *fiber.Ctx) bool {
	site := c.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// ourName reports whether a Host field names this machine in a way that no stranger's DNS can answer for. An HTTP/1.0
// client may leave the field out; a browser does not.
func ourName(called, own string) bool {
	host, _, err := net.SplitHostPort(called)
	if err != nil {
		host = called
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	switch {
	case host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost"):
		return true
	case own != "" && strings.EqualFold(host, own):
		return true
	}
	return net.ParseIP(strings.Trim(host, "[]")) != nil
}

// profilesAllowed allows profiles with a token, or where server.pprof does. A profile takes processor time for as long
// as its caller likes, and an <img> on any page can be the caller: the browser marks that in Sec-Fetch-Site.
func profilesAllowed(token bool, p Process) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if !token && (!p.Pprof() || isForeign(c)) {
			return c.Status(fiber.StatusForbidden).JSON(fiber.Map{
				"error": "profiles need server.admin_token_file, or server.pprof = true (a reload takes it up)"})
		}
		return c.Next()
	}
}
