package operator

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// bearer is the operator's token. Requests show it as Authorization: Bearer TOKEN.
type bearer struct {
	file  string // server.admin_token_file; "" = there is no token
	value atomic.Pointer[string]
}

// read reads the file. On an error the value in force stays.
func (b *bearer) read() error {
	if !b.exists() {
		return nil
	}
	raw, err := os.ReadFile(b.file)
	value := strings.TrimSpace(string(raw))
	if err == nil && len(value) < 8 {
		err = errors.New("it holds no token of at least 8 characters")
	}
	if err != nil {
		return fmt.Errorf("daemon: server.admin_token_file cannot be read: %w", err)
	}
	b.value.Store(&value)
	return nil
}

func (b *bearer) exists() bool { return b.file != "" }

// in reports whether a request has the token. The time of the comparison does not reveal where they differ.
func (b *bearer) in(h *fasthttp.RequestHeader) bool {
	return b.exists() && subtle.ConstantTimeCompare(h.Peek("Authorization"), []byte("Bearer "+*b.value.Load())) == 1
}

// require refuses requests without the token.
func (b *bearer) require(c *fiber.Ctx) error {
	if !b.in(&c.Request().Header) {
		return fiber.ErrUnauthorized
	}
	return c.Next()
}
