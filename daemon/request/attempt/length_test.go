package attempt

import "testing"

func TestSaysTooLong(t *testing.T) {
	f := func(text string, length int, ok bool) {
		t.Helper()
		if n, said := saysTooLong([]byte(text)); n != length || said != ok {
			t.Errorf("%s: %d, %v; want %d, %v", text, n, said, length, ok)
		}
	}
	f(`This model's maximum context length is 4096 tokens. However, you requested 9000`, 4096, true)
	f(`You passed 9000 input tokens and requested 16 output tokens. However, the model's context length is only 4096 tokens`, 4096, true)
	f(`The decoder prompt (length 9000) is longer than the maximum model length of 4096.`, 4096, true)
	f(`The input (9000 tokens) is longer than the model's context length (4096 tokens).`, 4096, true)
	f(`Requested token count exceeds the model's maximum context length of 4096 tokens.`, 4096, true)
	f(`litellm.ContextWindowExceededError: too long`, 0, true)
	f(`{"code":"context_length_exceeded"}`, 0, true)
	f(`maximum context length is 99999999999999999999`, 9999999999, true)
	f(`maximum context length`, 0, true)
	f(`temperature must be positive`, 0, false)
	f(``, 0, false)
}
