package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// Counts of the engines, and how they differ from the index's estimate.
var (
	promptTokens = newCounter("prompt_tokens_total", "Tokens of prompts that were answered, as the engines count them: "+
		"of streams only those that asked for it by stream_options.include_usage. key is the name of the client's key, "+
		"empty without keys.", "pool", "model", "key")
	cachedTokens = newCounter("prompt_cached_tokens_total", "Of prompt_tokens_total, those that the engine had in its "+
		"cache, by its own word (vLLM: --enable-prompt-tokens-details).", "pool", "model", "key")
	outputTokens = newCounter("output_tokens_total", "Generated tokens, as the engines count them.",
		"pool", "model", "key")
	beliefError = newHistogram("belief_error_ratio", "Of requests whose worker counted its cached tokens: those believed "+
		"cached less those that were, as a share of the prompt. 0 = the router was right; above, it believed too much.",
		beliefBuckets, "pool", "strategy")
	keyArrivals = newCounter("key_arrivals_total", "Requests that came for a pool by the name of the client's key, empty "+
		"without keys: streams and refused ones too.", "pool", "key")
	keyPrompts = newCounter("key_prompt_tokens_total", "Tokens of the prompts that were routed by the name of the "+
		"client's key, as the router estimates them: also of streams of which the engine counts nothing, for want of "+
		"stream_options.include_usage.", "pool", "key")
	keyRefusals = newCounter("key_refusals_total", "Requests of key_arrivals_total that were refused: by the router, or "+
		"since no worker was up or had a free place.", "pool", "key")
	arrivals = newCounter("arrivals_total", "Requests that came for a pool, refused ones too; with an empty pool those "+
		"for a model that no pool serves. A model that no worker has answered for yet is \"unknown\".", "pool", "model")
)

// Shares of a prompt. Within a hundredth is right, as blocks are cut off and the last token is always computed.
var beliefBuckets = []float64{-.5, -.25, -.1, -.05, -.01, .01, .05, .1, .25, .5, 1}

// keyOf names the series of a pool's clients by their key. The configuration names the keys.
type keyOf struct{ pool, key string }

// keySeries are the series of keyOf.
type keySeries struct{ arrivals, prompts, refused prometheus.Counter }

// key returns the series of a key.
func (s *series) key(of keyOf) *keySeries {
	return s.keys.getOrMake(&s.making, of, func() *keySeries {
		return &keySeries{
			arrivals: s.counter(keyArrivals, of.pool, of.key),
			prompts:  s.counter(keyPrompts, of.pool, of.key),
			refused:  s.counter(keyRefusals, of.pool, of.key),
		}
	})
}

// usageOf names the token series of a pool, a model as the client calls it, and a key.
type usageOf struct{ pool, model, key string }

// usageSeries are the series of usageOf.
type usageSeries struct{ prompt, cached, output prometheus.Counter }

// usage returns the series of the tokens.
func (s *series) usage(of usageOf) *usageSeries {
	if have, ok := s.tokens.get(of); ok {
		return have
	}
	of.model = s.models.label(of.model)
	return s.tokens.getOrMake(&s.making, of, func() *usageSeries {
		return &usageSeries{
			prompt: s.counter(promptTokens, of.pool, of.model, of.key),
			cached: s.counter(cachedTokens, of.pool, of.model, of.key),
			output: s.counter(outputTokens, of.pool, of.model, of.key),
		}
	})
}

// arrived returns the series of a pool's arrivals.
func (s *series) arrived(of arrivalOf) prometheus.Counter {
	return s.arrivals.getOrMake(&s.making, of, func() prometheus.Counter { return s.counter(arrivals, of.pool, of.model) })
}

// arrivalOf names a series of arrivals_total.
type arrivalOf struct{ pool, model string }

// countTokens adds the engine's token counts of a good answer.
func (s *series) countTokens(seen *message.Seen) {
	u := &seen.Usage
	if !u.Known {
		return
	}
	of := s.usage(usageOf{pool: seen.Pool, model: seen.Model, key: seen.Key})
	of.prompt.Add(float64(max(0, u.Prompt)))
	of.output.Add(float64(max(0, u.Output)))
	if !u.CachedKnown {
		return
	}
	of.cached.Add(float64(max(0, u.Cached)))
	if u.Prompt > 0 {
		s.strategy(strategyOf{pool: seen.Pool, strategy: seen.Strategy}).belief.
			Observe(float64(seen.Believed-u.Cached) / float64(u.Prompt))
	}
}
