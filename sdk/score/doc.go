// Package score is the rule behind prefixaware and kvaware: what a request costs on each worker, in seconds, smallest
// first. It stands beside sdk and not in a plugin, so that a strategy of one's own can start from the same rule.
//
//	score_i = 2*W*(1 + tilt_i/2) + Y*(1 + tilt_i) + 2*K*F*(Wmean + F)                            Y = P + 2*E
//
//	tilt_i = .75 * gate * max(inflight_i, prompt tokens in flight_i / mean prompt in flight) / max(1, mean inflight)
//	gate = min(1, max(0, (U - .1)/.3, (mean inflight - 8)/16))    U = prompt tokens in flight / KV tokens, of all rows
//	P = m_i*(c1*n + c2*n*(L - n/2)) + h1/bw1 + h2/bw2             n = max(1, L - h0 - h1 - h2); L = prompt tokens
//	E = max(0, L - h0 - free0_i) * R0_i * again                   again = m_i*(c1 + c2*L/2)
//	    with a CPU tier: the GPU's part at 1/bw1,
//	    plus max(0, L - h0 - h1 - free1_i) * R1_i * (shared tier ? 1/bw2 : again)
//	F = m*(c1*n + c2*n*(L - n/2))                                 m = the fleet's mean; what a tier brings is not in F
//	K = lambda / (1 - min(.9, 1.3*rho))                           rho = the fleet's mean
//
// Equal to the row b of the smallest score are the rows i of which all that is known is no worse:
//
//	score_i <= score_b + .15*(2*W_b + Y_b), matches within one block, inflight_i <= inflight_b,
//	pending_i <= pending_b, Y_i/m_i <= 1.01*Y_b/m_b
//	of these: fewest in flight, then fewest sent in the last 30 s (sum of e^(-age/30 s)), then fewest ever sent,
//	then index
//
// W is the wait in the worker's queue, P the prefill of what is not cached, E what is pushed out and will be wanted
// again, 2*K*F*(Wmean + F) the price: what those wait who come while the fleet is occupied with it. What each is made
// of is measured by the host and pushed with the rows.
//
// # Why so
//
// A longest match alone glues everybody who shares a system prompt to one worker; counts of requests see no difference
// between a prompt of 100 tokens and one of 60,000; a rule that prices only the prefill loses sight of what it evicts.
// All terms are therefore seconds. What is in flight tilts them, because it cannot be fooled by a wrong index.
//
// # What stands in the price
//
// What is known of the match, and nothing else that differs from worker to worker. In overload, work put anywhere costs
// everybody, so a hit is worth more than an even load: there the price is tens of times the request's own seconds, and
// grows with the square of the work. So it is a large factor on each term in it. With the worker's own slowness, own
// load, eviction and tilt in the price, a fleet in which nobody held a prompt of 40,000 tokens was decided by what was
// learnt of two workers, 1.04 and 1.20, or by a reuse of .12 and .15, and the prompt went to where 8 s were waiting and
// not to where nothing was: noise of 5 %, times a price of 100 s, outweighs a queue. The own wait in the price, to
// outweigh that noise in turn, moved chats from their hits in a surge. Now prompts without a match have equal prices
// everywhere, and go by queue, work and eviction, as seconds; those with one go by what it saves. A worker that is
// truly slow is known by its queue and by its prefill outside of the price.
//
// # The tilt
//
// What runs out in overload is KV, and what is in flight stands for it: by the count of requests, or by their prompts'
// tokens if those are more, in requests of the mean length. The count alone turns against itself where prompts differ:
// a worker that is full of long ones has few in flight, is tilted least, and gets the next long one too. The tokens
// alone do not see that many short requests slow each other's decoding. With one request in flight on each worker
// the same count is noise: three where the mean is one priced a turn at 2.5 times, and moved it from where it costs .1
// s to where it costs 8 s. So the tilt comes with the part of the fleet's KV that prompts in flight hold: none below a
// tenth, all from four tenths. Prompts count whole each time, also where engines hold a shared beginning once. Many
// short requests bring it too, for their decoding. The wait is tilted half, as what is in flight is in it already. The
// gate is open where capacities are unknown, and where a worker has a weight of its own or starts slowly: these act
// through the tilt alone.
//
// # Near ties
//
// m is a running median that moves by 4 % and more with a sample. On an idle fleet of equal workers the first to
// answer looks a little faster, gets the next request, and is again the one that is learnt of: of 24 different prompts
// it got up to 24. So a difference that may be the noise of what was learnt is none. It is measured in the best's own
// seconds: a part of the price, which is the same for all equals, would take any slowness for noise. It overrules
// nothing that is known: a longer match, a count, a queue, more work. Lost, simulated: the band without these
// conditions (1 to 3 % slower in most cells), a band of 5 % (narrower than two steps of learning: 12 to 22 of 24), a
// choice at random among equals (10 to 21 of 24), speeds rounded. The price: a worker truly up to 15 % slower gets an
// equal share of an idle fleet's cold prompts.
//
// # Weight and slow start
//
// Requests in flight are counted per unit of weight, in the tilt and in ties: a worker of weight 2 carries twice the
// requests at the same tilt. The seconds are not scaled, for the learnt slowness already sets a strong worker apart
// from a weak one; weight is the operator's setting on top of it. A worker in slow start counts as if it had twice its
// requests, the mean of the fleet and two more: it has no queue and an empty cache, and would otherwise get every new
// conversation at once. It still gets work that waits twice as long elsewhere, and never starves.
//
// # Arithmetic
//
// Products that are added are written float64(a*b) + c: without the conversion, a compiler may fuse the two into one
// rounding on some targets, and the native and the wasm form would not choose the same row. Clamps are written with
// math.Abs, one instruction, for the min and max builtins call a function for floats in wasm. A score that is not a
// number counts as infinite.
//
// # Who computes it?
//
// The host, where a strategy asks for it ([sdk.WantCost]) and takes the result ([Rule].ByCost): natively a row costs
// some 8 ns, in the sandbox some 45. A pick of prefixaware, its rows priced, costs 0.48 of what it costs with the score
// computed by the module at 256 workers, and 0.70 at 16 (BenchmarkPick; least of 16). [Price] takes all rows in one
// call, by the module's own loop, so that both choose the same to the bit (TestPriceDecides); a call of Terms for each
// made a pick 1.5 times as dear at 256 workers. A strategy that changes what is scored, as prefixaware's options do,
// computes it itself.
package score
