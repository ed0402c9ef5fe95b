package gate

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"
)

// Key is one client's key, as the configuration names it.
type Key struct {
	Name   string   // in logs
	Secret string   // what the client shows; an empty one is never accepted
	Models []string // that it may use: names, "org/*", "*"; none = nothing

	Workers []string // labels, each as name=value, of the workers that alone get its requests; none = any worker
	Explain bool     // it may ask how its requests were decided
	Salt    string   // cache_salt of its requests; "" = as its clients send it

	Priority [2]int  // the least and the greatest of its requests
	Weight   float64 // its share of a queue beside the others'; 0 = 1

	SocketLife time.Duration // of a WebSocket; 0 = no limit
}

// Keys finds the caller by the key that a request shows. The nil Keys lets everybody pass. Safe for concurrent use: it
// never changes.
type Keys struct {
	digests [][sha256.Size]byte
	callers []Caller
}

// Caller is the sender of a request.
type Caller struct {
	Name    string // of the key; "" where no key is asked for
	Explain bool   // it may ask how its requests were decided
	Salt    string // cache_salt of its requests; "" = as the client sends it
	models  []string

	Workers  []string // labels, each as name=value, of the workers that alone get its requests; none = any worker
	Priority [2]int   // the least and the greatest of its requests
	Weight   float64  // its share of a queue; 0 = 1

	SocketLife time.Duration // of a WebSocket; 0 = no limit
}

// everybody is the caller where no key is asked for.
var everybody = &Caller{Explain: true, models: []string{"*"}, Priority: [2]int{-100, 0}}

// NewKeys returns the keys that Check accepts; without any, nil: everybody passes.
func NewKeys(list []Key) *Keys {
	if len(list) == 0 {
		return nil
	}
	k := &Keys{}
	for _, key := range list {
		k.digests = append(k.digests, sha256.Sum256([]byte(key.Secret)))
		k.callers = append(k.callers, Caller{Name: key.Name, Explain: key.Explain, Salt: key.Salt, models: key.Models,
			Workers: key.Workers, Priority: key.Priority, Weight: key.Weight, SocketLife: key.SocketLife})
	}
	return k
}

// Check finds the caller by the values of Authorization (Bearer KEY, as OpenAI's clients send) and X-Api-Key (as
// Anthropic's do); "" is a field that is not there. One good key of the two is enough; if both are good, Authorization
// decides who it is. It returns nil and false if neither is known.
func (k *Keys) Check(authorization, xAPIKey string) (*Caller, bool) {
	if k == nil {
		return everybody, true
	}
	found := k.find(bearer(authorization))
	other := k.find(xAPIKey)
	found = subtle.ConstantTimeSelect(subtle.ConstantTimeEq(int32(found), -1), other, found)
	if found < 0 {
		return nil, false
	}
	return &k.callers[found], true
}

// Named returns the caller of the key of that name, nil if there is none.
func (k *Keys) Named(name string) *Caller {
	for i := 0; k != nil && i < len(k.callers); i++ {
		if k.callers[i].Name == name {
			return &k.callers[i]
		}
	}
	return nil
}

// find returns the place of the key, or -1. It compares with every key whatever the outcome. Nothing given is known at
// once: that shows a client only what it sent, and a key that was configured empty opens nothing.
func (k *Keys) find(given string) int {
	if given == "" {
		return -1
	}
	digest := sha256.Sum256([]byte(given))
	found := -1
	for i := range k.digests {
		same := subtle.ConstantTimeCompare(digest[:], k.digests[i][:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	return found
}

// bearer returns the token of an Authorization field (RFC 6750: the scheme in any case, then spaces), or "".
func bearer(authorization string) string {
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// Rights returns what the caller may see, as a text: equal ones may see the same.
func (c *Caller) Rights() string {
	return strings.Join(c.models, "\x00") + "\x01" + strings.Join(c.Workers, "\x00")
}

// Allows reports whether the caller may use the model: by its name, "org/*" or "*". A request that names no model
// gets whatever a worker serves, so only "*" allows it.
func (c *Caller) Allows(model string) bool {
	for _, pattern := range c.models {
		prefix, wild := strings.CutSuffix(pattern, "*")
		if wild && strings.HasPrefix(model, prefix) || pattern == model && model != "" {
			return true
		}
	}
	return false
}
