package prompt

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReference(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := Reference([]byte(body)); got != want {
			t.Errorf("%s: %q; want %q", body, got, want)
		}
	}
	f(`{"input_file_id":"file-1","endpoint":"/v1/x"}`, "file-1")
	f(`{"model":"m","input_reference":{"file_id":"file-1"}}`, "file-1")
	f(`{"video":{"id":"video_1"},"prompt":"more"}`, "video_1")
	f(`{"video":{"url":"x","id":"video_1"}}`, "video_1")
	f(`{"image_reference":"https://a/b.png","file_id":"f1"}`, "f1") // a URL is no id
	f(`{"input_reference":"data:image/png;base64,AAAA"}`, "")
	f(`{"input_file_id":null}`, "")
	f(`{"input_file_id":["a"]}`, "")
	f(`{"input_file_id":"`+strings.Repeat("a", maxID+1)+`"}`, "")
	f(`{"metadata":{"file_id":"f1"}}`, "")
	f(`{"video":{"video":{"id":"v1"}}}`, "")
	f(`{"file_id":"f1`, "")
	f(`{"file_id":"f1",`, "f1")
	f(`[]`, "")
	f(``, "")
}

func TestFormReference(t *testing.T) {
	f := func(parts, want string) {
		t.Helper()
		if got := FormReference("multipart/form-data; boundary=x", []byte(crlf(parts+"--x--\n"))); got != want {
			t.Errorf("%s: %q; want %q", parts, got, want)
		}
	}
	part := func(name, value string) string {
		return "--x\nContent-Disposition: form-data; name=\"" + name + "\"\n\n" + value + "\n"
	}
	f(part("model", "m")+part("input_reference[file_id]", "file-1"), "file-1")
	f(part("video", "video_1"), "video_1")
	f(part("prompt", "file-1"), "")
	f(part("video", "a b"), "")
	f("--x\nContent-Disposition: form-data; name=\"video\"; filename=\"a.mp4\"\n\nbytes\n", "")
	if got := FormReference("text/plain", nil); got != "" {
		t.Error(got)
	}
}

func TestJobIDs(t *testing.T) {
	f := func(answer, id, output, errors string) {
		t.Helper()
		if got, files := JobIDs([]byte(answer)); got != id || files != [2]string{output, errors} {
			t.Errorf("%s: %q, %q; want %q, %q, %q", answer, got, files, id, output, errors)
		}
	}
	f(`{"id":"b1","output_file_id":"f1","error_file_id":"f2"}`, "b1", "f1", "f2")
	f(`{"data":{"id":"x"},"id":"b1"}`, "b1", "", "")
	f(`{"id":17}`, "17", "", "")
	f(`{"id":17`, "", "", "") // more digits may follow
	f(`{"id":1.5}`, "", "", "")
	f(`{"id":null,"error_file_id":"f2",`, "", "", "f2")
	f(`{"id":"a/b"}`, "", "", "")
	f(`{"id":"b`, "", "", "")
	f(`[{"id":"b1"}]`, "", "", "")
	f("", "", "", "")
}

// FuzzJobIDs: any text is read without a fault, and an answer that encoding/json reads gives the same id.
func FuzzJobIDs(f *testing.F) {
	f.Add(`{"id":"a","output_file_id":"b"}`)
	f.Add(`{"id":3,"x":[{"id":"n"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		id, _ := JobIDs([]byte(text))
		Reference([]byte(text))
		FormReference("multipart/form-data; boundary=x", []byte(text))
		var v map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &v) != nil || strings.Count(text, `id"`) != 1 || strings.Contains(text, `\`) {
			return
		}
		var want string
		if json.Unmarshal(v["id"], &want) == nil && isID([]byte(want)) && id != want {
			t.Errorf("%q: %q; want %q", text, id, want)
		}
	})
}
