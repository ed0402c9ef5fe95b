package prompt

// errorStatus has the status of each name that is an error's type or code. vLLM writes names of all three sorts.
var errorStatus = map[string]int{
	// OpenAI and Anthropic
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"permission_error":      403,
	"not_found_error":       404,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"insufficient_quota":    429,
	"api_error":             500,
	"internal_error":        500,
	"server_error":          500,
	"timeout_error":         504,
	"overloaded_error":      529,

	// vLLM's exceptions
	"BadRequestError":          400,
	"AuthenticationError":      401,
	"PermissionDeniedError":    403,
	"NotFoundError":            404,
	"ConflictError":            409,
	"UnprocessableEntityError": 422,
	"RateLimitError":           429,
	"InternalServerError":      500,
	"NotImplementedError":      501,
	"ServiceUnavailableError":  503,

	// the text of a status, which vLLM returns where its web framework refuses a request
	"Bad Request":           400,
	"Unauthorized":          401,
	"Forbidden":             403,
	"Not Found":             404,
	"Unprocessable Entity":  422,
	"Unprocessable Content": 422,
	"Too Many Requests":     429,
	"Internal Server Error": 500,
	"Not Implemented":       501,
	"Service Unavailable":   503,
}

// statusCode returns the status of an error whose code and type are the raw values: a code that is a number or a string
// of digits, else that of the type's name, else that of the code's, else 0.
func statusCode(code, kind []byte) int {
	raw := code
	if in := Inside(raw); in != nil {
		raw = in
	}
	if n := int(min(max(parseNumber(raw), 0), 1<<20)); n > 0 {
		return n
	}
	if n := errorStatus[string(Inside(kind))]; n > 0 {
		return n
	}
	return errorStatus[string(Inside(code))]
}
