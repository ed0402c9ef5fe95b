// Package score is the rule behind prefixaware and kvaware: what a request costs on each worker, in seconds, smallest
// first. Your own strategy can start from the same rule.
//
//	score_i = 2*W*(1 + tilt_i/2) + (Y + O + T)*(1 + tilt_i) + 2*K*F*(Wmean + F) + D              Y = P + 2*E + A
//
//	tilt_i = .75 * gate * max(inflight_i, prompt tokens in flight_i / mean prompt in flight) / max(1, mean inflight)
//	gate = min(1, max(0, (U - .1)/.3, (mean inflight - 8)/16))    U = prompt tokens in flight / KV tokens, of all rows
//	P = m_i*(c1*n + c2*n*(L - n/2)) + h1/bw1 + h2/bw2             n = max(1, L - h0 - h1 - h2); L = prompt tokens
//	E = max(0, L - h0 - free0_i) * R0_i * again                   again = m_i*(c1 + c2*L/2)
//	    with a CPU tier: the GPU's part at 1/bw1,
//	    plus max(0, L - h0 - h1 - free1_i) * R1_i * (shared tier ? 1/bw2 : again)
//	O = min(L, over_i - the least over of all rows) * again
//	    over_i = max(0, L + expected answer - room_i)    room_i = .9*KV tokens - held by requests in flight + shared
//	T = turns to follow where a session begins * inflight_i * mean prefill of what was sent lately
//	    at turn 1; at turn 2 if the last worker lacks the longest match
//	A = seconds until its LoRA adapter runs
//	D = Row.Delay, seconds that answers take longer for it
//	F = m*(c1*n + c2*n*(L - n/2))                                 m = the fleet's mean; what a tier brings is not in F
//	K = lambda / (1 - min(.9, 1.3*rho))                           rho = the fleet's mean
//	    0 where a worker that joins idles
//
// Equal to the row b of the smallest score are the rows i of which all that is known is no worse:
//
//	score_i <= score_b + .15*(2*W_b + Y_b), matches within one block, inflight_i <= inflight_b,
//	pending_i <= pending_b, D_i <= D_b, Y_i/m_i <= 1.01*Y_b/m_b, over_i <= over_b
//	of these: fewest in flight, then fewest sent in the last 30 s (sum of e^(-age/30 s)), then fewest ever sent,
//	then index
//
// W is the wait in the worker's queue, P the prefill of what is not cached, E what is pushed out and will be wanted
// again, O what is computed again as the KV is full, T what the turns of a new session will wait there,
// 2*K*F*(Wmean + F) the price: what requests wait that come while the fleet is occupied with it.
//
// # Arithmetic
//
// Products that are added are written float64(a*b) + c: otherwise some compilers round only once, and the native and
// the wasm form choose different rows. Clamps use math.Abs: min and max of floats call a function in wasm. A score that
// is not a number is infinite.
//
// For a strategy that wants it ([sdk.WantCost], [Rule].ByCost) the host computes the score, by the module's own loop
// ([Price]).
//
// why.md has the reasons and the details, and what lost.
package score
