package sagemaker

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestRequestType(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		if got := RequestType([]byte(body)); got != want {
			t.Errorf("%.80q: %q; want %q", body, got, want)
		}
	}
	f(`{"requestType":"NEW_SESSION"}`, "NEW_SESSION")
	f(" {\n\t\"requestType\" : \"CLOSE\"\r\n}", "CLOSE")
	f(`{"model":"m","n":-1.5e3,"x":null,"deep":{"a":[1,{"b":"}"}]},"requestType":"CLOSE_SESSION","more":[]}`, "CLOSE_SESSION")
	f(`{"requestType":"SESSION","extSessionID":"abc"}`, "SESSION")
	f(`{"messages":[{"content":"say \"requestType\":\"CLOSE\""}]}`, "")
	f(`{"deep":{"requestType":"CLOSE"}}`, "")
	f(`{"a":"\\","requestType":"CLOSE"}`, "CLOSE")
	f(`{"a":"\\\"","requestType":"CLOSE"}`, "CLOSE")
	f(`{"requestType":"CLOSE","requestType":"NEW_SESSION"}`, "NEW_SESSION") // as Python's and Go's parsers
	f(`{"requestType":"CLOSE","requestType":5}`, "")
	f(`{"requestType":null}`, "")
	f(`{"requestType":{"a":"CLOSE"}}`, "")
	f(`["requestType","CLOSE"]`, "")
	f(`"requestType"`, "")
	f(``, "")
	f(`{"requestType":"CLO`, "")
	f(`{"requestType":"CLOSE","video":"AAAA`, "CLOSE") // cut
	f(`{"video":"AAAA","requestType"`, "")
	f(`{"requestType":"`+strings.Repeat("x", 1000)+`"}`, strings.Repeat("x", maxWord))
	f(`{"requestType":"NEW_SESSION","video":"`+strings.Repeat("A", 8<<20)+`"}`, "NEW_SESSION")
}

// Where encoding/json finds a string, so must the scan, and nothing else. An escape in a key is not resolved.
func FuzzRequestType(f *testing.F) {
	f.Add([]byte(`{"model":"m","deep":{"a":[1,{"b":"}"}]},"requestType":"CLOSE_SESSION","more":[]}`))
	f.Add([]byte(`{"a":"\\\"","requestType":"CLOSE","requestType":5}`))
	f.Add([]byte(`{"requestType" : "NEW_SESSION"`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got := RequestType(body)
		if len(got) > maxWord {
			t.Fatalf("%q: %d bytes", body, len(got))
		}
		var object map[string]json.RawMessage
		if bytes.Contains(body, []byte(`\`)) || json.Unmarshal(body, &object) != nil {
			return
		}
		var want string
		if json.Unmarshal(object["requestType"], &want) != nil || !bytes.Contains(body, []byte(want)) { // Go mends bad UTF-8
			return
		}
		if want = want[:min(len(want), maxWord)]; got != want {
			t.Fatalf("%q: %q; want %q", body, got, want)
		}
	})
}

func BenchmarkRequestType(b *testing.B) {
	f := func(name, text string) {
		body := []byte(text)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				RequestType(body)
			}
		})
	}
	f("none-8MB", `{"messages":[{"content":"`+strings.Repeat("A", 8<<20)+`"}]}`)
	f("last-8MB", `{"video":"`+strings.Repeat("A", 8<<20)+`","requestType":"NEW_SESSION"}`)
}
