package prompt

import "testing"

// TestOpening: all turns of a chat have one opening, and other chats have others.
func TestOpening(t *testing.T) {
	opening := func(k Kind, body string) string {
		t.Helper()
		r, err := new(Parser).Parse(k, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return r.Opening()
	}
	for _, c := range []struct {
		kind  Kind
		a, b  string
		equal bool
	}{
		{Chat, `{"messages":[{"role":"user","content":"a"}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":"x"}]}`, true},
		{Chat, `{"messages":[{"role":"system","content":"1"},{"role":"user","content":"a"}]}`,
			`{"messages":[{"role":"system","content":"2"},{"role":"user","content":"a"},{"role":"user","content":"b"}]}`, true},
		{Chat, `{"messages":[{"role":"user","content":"a"}]}`, `{"messages":[{"role":"user","content":"b"}]}`, false},
		{Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`,
			`{"system":"x","messages":[{"role":"user","content":"a"},{"role":"assistant","content":"x"}]}`, true},
		{Responses, `{"input":"a"}`, `{"input":[{"role":"user","content":"a"},{"role":"assistant","content":"x"}]}`, true},
		{Completion, `{"prompt":"a"}`, `{"prompt":"b"}`, false},
	} {
		a, b := opening(c.kind, c.a), opening(c.kind, c.b)
		if a == "" || b == "" || (a == b) != c.equal {
			t.Errorf("%s %s: %x and %x", c.a, c.b, a, b)
		}
	}
	if o := opening(Chat, `{"messages":[{"role":"system","content":"a"}]}`); o != "" {
		t.Errorf("a chat without a user begins with %x", o)
	}
}

// TestFormModel: the places are those of the values, files do not count.
func TestFormModel(t *testing.T) {
	body := "--b\r\nContent-Disposition: form-data; name=\"model\"; filename=\"f\"\r\n\r\nfile\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\none\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nmodel\r\n--b--\r\n"
	spans := FormModel("multipart/form-data; boundary=b", []byte(body))
	if len(spans) != 1 || body[spans[0][0]:spans[0][1]] != "one" {
		t.Errorf("found at %v", spans)
	}
	if spans := FormModel("multipart/form-data; boundary=c", []byte(body)); spans != nil {
		t.Errorf("found at %v by another boundary", spans)
	}
}
