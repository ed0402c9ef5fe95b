package resume

import (
	"encoding/json"
	"strconv"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// unquoted returns the text that stands inside of a JSON string.
func unquoted(in []byte) (text string) {
	_ = json.Unmarshal(quoted(in), &text) // it was scanned as a string
	return text
}

// field returns the raw value of a field of an object, nil if there is none.
func field(object []byte, name string) (value []byte) {
	prompt.Fields(object, func(n, v []byte) bool {
		if string(n) == name {
			value = v
		}
		return true
	})
	return value
}

// integer returns a number that is not negative; 0 for anything else.
func integer(raw []byte) int {
	n, err := strconv.ParseUint(string(raw), 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// given reports whether a value is there and says something: it is not null, false, 0 nor empty.
func given(value []byte) bool {
	switch string(value) {
	case "", "null", "false", "0", `""`, "[]", "{}":
		return false
	}
	return true
}

// usage is an engine's counts, in whichever dialect.
type usage struct {
	prompt, output int
	known          bool
}

func (u *usage) read(raw []byte) {
	if len(raw) == 0 || raw[0] != '{' {
		return
	}
	u.known = true
	prompt.Fields(raw, func(name, value []byte) bool {
		switch string(name) {
		case "prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens":
			u.prompt += integer(value)
		case "completion_tokens", "output_tokens":
			u.output = integer(value)
		}
		return true
	})
}

// chunk is an event of a chat or a completion, with places in its data.
type chunk struct {
	id, created            []byte
	content, text, ids     []byte
	promptIDs              []byte
	calls, finish, stopped []byte
	role, choices          []byte
	usage                  usage
	index, some            int
	fails                  bool // it is an error
	strange                bool // it has output that is neither text nor a call
}

func (c *chunk) read(data []byte) bool {
	return prompt.Fields(data, func(name, value []byte) bool {
		switch string(name) {
		case "id":
			c.id = value
		case "created":
			c.created = value
		case "usage":
			c.usage.read(value)
		case "error":
			c.fails = given(value)
		case "prompt_token_ids":
			c.readPromptIDs(value)
		case "choices":
			c.choices = value
			prompt.Elements(value, func(choice []byte) bool {
				c.some++
				prompt.Fields(choice, c.readChoice)
				return true
			})
			c.strange = c.strange || c.some > 1
		}
		return true
	})
}

func (c *chunk) readPromptIDs(value []byte) {
	if value[0] == '[' {
		c.promptIDs = value
	}
}

func (c *chunk) readChoice(name, value []byte) bool {
	switch string(name) {
	case "index":
		c.index = integer(value)
	case "text":
		c.text = value
	case "token_ids":
		c.ids = value
	case "prompt_token_ids":
		c.readPromptIDs(value)
	case "finish_reason":
		if given(value) {
			c.finish = value
		}
	case "stop_reason":
		c.stopped = value
	case "logprobs":
		c.strange = c.strange || given(value)
	case "delta":
		prompt.Fields(value, c.readDelta)
	}
	return true
}

func (c *chunk) readDelta(name, value []byte) bool {
	switch string(name) {
	case "role":
		c.role = value
	case "content":
		c.content = value
	case "tool_calls":
		if given(value) {
			c.calls = value
		}
	default:
		c.strange = c.strange || given(value)
	}
	return true
}
