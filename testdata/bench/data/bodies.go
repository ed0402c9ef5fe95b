package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

const chatPath = "/v1/chat/completions"

// nonce stands in a prompt where each request writes 16 digits of its own.
const nonce = "################"

var words = strings.Fields("the of and to a in that is was he for it with as his on be at by had not are but from " +
	"or have an they which one " +
	"you were all her she there would their we him been has when who will no more if out so up said what its about " +
	"than into")

// prose is n bytes of words.
func prose(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

func message(role, text string) string {
	return fmt.Sprintf(`{"role":"%s","content":"%s"}`, role, text)
}

func chat(stream bool, messages ...string) string {
	return fmt.Sprintf(`{"model":"sim","stream":%v,"max_tokens":256,"messages":[%s]}`, stream, strings.Join(messages, ","))
}

// sized is a request of about n bytes whose prompt begins with a nonce. What the worker is to do with it stands in a
// field: SDKs send no query.
func sized(n int, path string, stream bool) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	return wire.Wish(path, chat(stream, message("user", nonce+prose(r, n-110))))
}

// renew returns a function that gives the request with a new nonce each time. Not safe for concurrent use.
func renew(request []byte) func() []byte {
	own := bytes.Clone(request)
	at := bytes.Index(own, []byte(nonce))
	return func() []byte {
		copy(own[at:at+len(nonce)], fmt.Sprintf("%016x", rand.Uint64()))
		return own
	}
}

// turns is one conversation from about 3 to 13 KB: 8 requests, each with the one before it, its answer and a new
// question.
func turns() (requests [][]byte) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 2))
	said := []string{message("system", prose(r, 1500)), message("user", prose(r, 1500))}
	for range 8 {
		requests = append(requests, wire.Post(chatPath, chat(false, said...)))
		said = append(said, message("assistant", wire.Reply), message("user", prose(r, 1300)))
	}
	return requests
}
