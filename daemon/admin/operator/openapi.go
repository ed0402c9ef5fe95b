package operator

import (
	_ "embed" // for openapi.json

	"github.com/gofiber/fiber/v2"
)

// openAPI describes every route and answer of this listener. A test writes it from the routes and the types of the
// answers (openapi_test.go); docs/openapi.json is a link to it, as embed reads only this folder.
//
//go:embed openapi.json
var openAPI []byte

// openAPIPage answers GET /api/v1/openapi.json.
func openAPIPage(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return c.Send(openAPI)
}
