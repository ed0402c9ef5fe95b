package bugs

import (
	"fmt"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig/wire"
	"github.com/warmpath/warmpath/testdata/trials/engine"
)

// Workers of one model have different --max-model-len, and say so. What one cannot take goes to the other.
var lengths = []wallCase{
	{"a-long-prompt-goes-to-the-worker-that-can-take-it", longer(chatPath, 1, true)},
	{"a-long-prompt-of-completions-goes-to-the-worker-that-can", longer("/v1/completions", 1, true)},
	{"a-long-prompt-goes-to-one-of-three-that-can-take-it", longer(chatPath, 2, true)},
	{"a-400-that-names-the-length-is-tried-at-the-longer-one", longer(chatPath, 1, false)},
}

// longer has so many workers of 4,096 tokens and one of 32,768. listed = /v1/models tells.
func longer(path string, short int, listed bool) func(*lab) (string, bool) {
	return func(l *lab) (string, bool) {
		var engines []*engine.Engine
		for i := range short + 1 {
			most := 4096
			if i == short {
				most = 32768
			}
			said := most
			if !listed {
				said = 0
			}
			engines = append(engines, l.engine(&engine.Engine{
				Post:   func(c *wire.Call) bool { return bounded(c, most) },
				Listed: func() []engine.Model { return []engine.Model{{ID: "sim", MaxLen: said}} },
			}))
		}
		r := l.router(engines...)
		ask := func(mark string, n, words int, most string) int {
			text := strings.Repeat("some words ", words)
			return refused(clients(1, n, func(_, i int) wire.Answer {
				return r.post(path, chat(fmt.Sprintf("%d %s %s", i, mark, text), fmt.Sprintf(`"prompt":"%d %s %s"`, i, mark, text),
					`"max_tokens":`+most))
			}))
		}
		prompts, outputs, shorts := ask("long", 16, 3200, "16"), ask("output", 16, 1, "8000"), ask("short", 8, 1, "16")
		return fmt.Sprintf("refused: %d of 16 long prompts, %d of 16 with max_tokens 8000, %d of 8 short", prompts, outputs,
			shorts), prompts+outputs+shorts == 0
	}
}

// bounded answers a request that fits into so many tokens, at 8 bytes each: the prompt is there twice.
func bounded(c *wire.Call, most int) bool {
	need := len(c.Text) / 8
	if strings.Contains(string(c.Text), `"max_tokens":8000`) {
		need += 8000
	}
	if need > most {
		return engine.Refuse(c, 400, fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d "+
			"tokens in the messages. Please reduce the length of the messages.", most, need))
	}
	return engine.Echo(c)
}
