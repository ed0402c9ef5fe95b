package operator

import (
	"crypto/subtle"
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
	value, err := Token(b.file)
	if err != nil {
		return fmt.Errorf("daemon: server.admin_token_file: %w", err)
	}
	b.value.Store(&value)
	return nil
}

// Token reads an operator's token. An error includes the remedy, and never the token.
func Token(file string) (string, error) {
	const remedy = "put 8 characters or more there, readable for this user"
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, remedy)
	}
	token := strings.TrimSpace(string(raw))
	if len(token) < 8 {
		return "", fmt.Errorf("the token in %s has %d characters; %s", file, len(token), remedy)
	}
	return token, nil
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
