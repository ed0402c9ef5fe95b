package conf

// maxPerMinute bounds the limits of a key: with more, the sums of a minute would not be exact.
const maxPerMinute = 1 << 40

// checkKeyLimits checks what a key may take.
func checkKeyLimits(r *report, path string, k *Key) {
	r.between(child(path, "max_in_flight"), k.MaxInFlight, 0, maxCount, "requests, 0 for no limit,")
	r.between(child(path, "requests_per_minute"), k.Requests, 0, maxPerMinute, "requests, 0 for no limit,")
	r.between(child(path, "tokens_per_minute"), k.Tokens, 0, maxPerMinute, "tokens, 0 for no limit,")
	r.oneOf(child(path, "count"), k.Count, "uncached", "all")
	if k.WebsocketLife != 0 {
		r.clientTime(child(path, "websocket_life"), k.WebsocketLife)
	}
}
