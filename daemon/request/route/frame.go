package route

import (
	"hash/fnv"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// describe writes the request's own fields into its frame. id is that of its session, whose name is tenant's.
func describe(f *host.Frame, p *Pool, a *Ask, tenant, id string) {
	h, r := &f.Header, a.Prompt
	h.Seq = a.Turn
	h.Now = a.At.UnixNano()
	h.Random = a.Random
	h.MaxTokens, h.Priority = r.MaxTokens, r.Priority
	if r.Stream {
		h.Flags |= abi.HeaderStream
	}
	if a.Claim.Final {
		h.Flags |= abi.HeaderFinal
	}
	h.Flags |= uint32(a.Leg)
	h.Model = hashOf(r.Model)
	h.Session = hashIn(tenant, id)
	h.Tenant = hashOf(r.CacheSalt)
	h.Caller, h.Endpoint = hashOf(a.Caller), endpoints[r.Kind]
	h.ExpectedOutput = p.answers.expected(h.Model, h.Caller, r.MaxTokens)
	h.Lambda = float32(p.Workers.Lambda(a.At))
	h.C1, h.C2 = float32(p.Workers.C1()), float32(p.Workers.C2())
	f.Labels, h.LabelsEpoch = p.Workers.Labels()
	h.Labels = uint32(len(f.Labels))
	if !a.Deadline.IsZero() {
		h.Deadline = a.Deadline.UnixNano()
	}
	h.QueueDepth, h.FlowsWaiting = uint32(a.Queue.Depth), uint32(a.Queue.Flows)
	h.Waited = float32(a.Queue.Waited.Seconds())
	f.Session = id
	f.Model = r.Model
	f.Tenant = r.CacheSalt
	f.Caller = a.Caller
	f.Headers = a.Headers
	f.Request = a.ID
}

// hashOf returns a string's number for strategies: FNV-1a, the same over restarts and routers; 0 for the empty string.
func hashOf(s string) uint64 {
	if s == "" {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(s))
	return max(1, h.Sum64())
}

// hashIn returns a session's number for strategies: that of its name alone, if it is no tenant's.
func hashIn(tenant, id string) uint64 {
	if tenant == "" || tenant == "\x00" || id == "" { // no key and no salt
		return hashOf(id)
	}
	return hashOf(tenant + "\x00" + id)
}

// endpoints are the kinds of bodies in the contract's words.
var endpoints = map[prompt.Kind]uint32{
	prompt.Chat: abi.EndpointChat, prompt.Completion: abi.EndpointCompletions, prompt.Tokens: abi.EndpointCompletions,
	prompt.Responses: abi.EndpointResponses,
	prompt.Messages:  abi.EndpointMessages, prompt.Embedding: abi.EndpointEmbeddings, prompt.Rerank: abi.EndpointScore,
	prompt.Score: abi.EndpointScore, prompt.Tokenize: abi.EndpointTokenize, prompt.CountTokens: abi.EndpointTokenize,
}
