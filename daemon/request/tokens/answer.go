package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

var errAnswer = errors.New("tokens: an answer that is not understood")

// statusError is a worker's answer of 500 or more.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("HTTP status %d", int(e)) }

// inWords returns an error without addresses, which logs must not show.
func inWords(err error) string {
	var status statusError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "slower than pools.tokens.budget"
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, errAnswer):
		return "an answer that is not understood"
	}
	return "not reached, or it broke off"
}

// parseTokenize reads an answer of /tokenize: the ids, no more than most, and the longest prompt that the model takes.
func parseTokenize(answer []byte, most int) (ids []uint32, longest int, err error) {
	count, ok := -1, false
	whole := prompt.Fields(answer, func(name, value []byte) bool {
		switch string(name) {
		case "tokens":
			ids, ok = appendIDs(make([]uint32, 0, min(len(value)/5, most)), value, most)
		case "count":
			_ = json.Unmarshal(value, &count)
		case "max_model_len":
			_ = json.Unmarshal(value, &longest)
		}
		return true
	})
	if !whole || !ok || count != len(ids) {
		return nil, 0, errAnswer
	}
	return ids, longest, nil
}

// parseRender reads an answer of a render: an object, or a list of one for a completion. If the answer has features,
// the prompt holds more than text.
func parseRender(answer []byte, most int) (ids []uint32, err error) {
	ok, plain := false, true
	if i := skipSpace(answer, 0); i < len(answer) && answer[i] == '[' {
		n := 0
		prompt.Elements(answer, func(e []byte) bool {
			n++
			answer = e
			return true
		})
		if n != 1 {
			return nil, errAnswer
		}
	}
	whole := prompt.Fields(answer, func(name, value []byte) bool {
		switch string(name) {
		case "token_ids":
			ids, ok = appendIDs(make([]uint32, 0, min(len(value)/5, most)), value, most)
		case "features":
			plain = value[0] == 'n'
		}
		return true
	})
	if !whole || !ok || !plain {
		return nil, errAnswer
	}
	return ids, nil
}
