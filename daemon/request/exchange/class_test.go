package exchange

import (
	"fmt"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// TestClassOf: refusals of one kind of request say nothing of another, nor of another model.
func TestClassOf(t *testing.T) {
	class := func(method, path, model string) uint8 {
		return classOf(prompt.KindOf(method, path), method, path, model)
	}
	chats, images := class("POST", "/v1/chat/completions", "m"), class("POST", "/v1/images/generations", "m")
	for _, other := range []string{"/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages", "/tokenize", "/score"} {
		if chats == class("POST", other, "m") {
			t.Errorf("chats share a class with %s", other)
		}
	}
	if chats == class("POST", "/v1/chat/completions", "adapter") {
		t.Error("two models share a class")
	}
	if images != class("POST", "/v1/images/edits", "m") {
		t.Error("images have two classes")
	}
	if images == class("POST", "/v1/audio/speech", "m") && images == class("POST", "/v1/videos", "m") {
		t.Error("all that has no kind shares a class")
	}
	if class("POST", "/v1/files", "") == class("GET", "/v1/files", "") {
		t.Error("what a GET is refused says nothing of a POST")
	}
	for i := range 5000 { // that a client makes up
		odd := fmt.Sprintf("/v1/%d/x", i)
		if c := class("GET", odd, odd); c < 8*prompt.Kinds || c >= judge.Classes {
			t.Fatalf("%s has class %d, as a kind has", odd, c)
		}
	}
}
