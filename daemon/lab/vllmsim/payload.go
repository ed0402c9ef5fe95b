package vllmsim

import (
	"context"
	"net/http"
)

const (
	// payloadTokenBytes of a payload make one token of the prompts that see it: 100 MB are maxPayloadTokens of them.
	payloadTokenBytes = 24 << 10
	// maxPayloadTokens is what several pictures cost in a real model.
	maxPayloadTokens = 4096
)

type payloadKey struct{}

// withPayload returns the request with tokens that its prompt is to begin with.
func withPayload(r *http.Request, tokens []uint32) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), payloadKey{}, tokens))
}

// payloadOf returns the tokens with which a prompt begins whose session has a payload.
func payloadOf(r *http.Request) []uint32 {
	tokens, _ := r.Context().Value(payloadKey{}).([]uint32)
	return tokens
}
