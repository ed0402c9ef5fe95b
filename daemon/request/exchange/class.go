package exchange

import (
	"net/http"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// classOf returns the class of a request by which its worker's refusals are kept apart: the kind of its body, and what
// has no kind by its method and the first two segments of its path. Each is apart for some models. What has a kind
// shares no class with another kind, nor with a path that a client makes up.
func classOf(k prompt.Kind, method, path, model string) uint8 {
	const models = 8
	const kinds = models * int(prompt.Kinds)
	const others = uint8(judge.Classes-kinds) / 2
	if k != prompt.Other {
		return uint8(models*int(k) + int(hashOf(model)%models))
	}
	end, slashes := 0, 0
	for ; end < len(path) && slashes < 3; end++ {
		if path[end] == '/' {
			slashes++
		}
	}
	class := uint8(kinds) + uint8(hashOf(method, path[:end], model)%uint32(others))
	if method != http.MethodPost { // a client that looks for what there is
		class += others
	}
	return class
}

// hashOf returns the hash FNV-1a of some texts.
func hashOf(parts ...string) uint32 {
	hash := uint32(2166136261)
	for _, part := range parts {
		for i := range len(part) {
			hash = (hash ^ uint32(part[i])) * 16777619
		}
	}
	return hash
}
