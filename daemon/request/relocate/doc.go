// Package relocate moves conversations away from a worker before it leaves, so that their next turns do not have to
// compute their whole prompts again.
//
// # How
//
// A [Book] keeps the last request of each conversation whose worker has answered it, within a bound of memory. It needs
// no names: a prompt that continues the last prompt of a conversation belongs to that conversation.
//
// When a worker is about to leave, [Book.Plan] returns the moves of its conversations to the others; when one has come,
// [Book.Join] returns moves to it, for a minute and the shortest prompts first, as it is to have its share soon. The
// caller sends each conversation's last prompt to the other worker with an answer of one token. So that worker holds
// it. Until then [Book.Home] has the next turn go where its cache is.
//
// Where the workers share a tier of KV, the new worker loads the prompt from there: see [Way].
//
// A [Plan] has one move at a time to each worker, and cuts prompts into pieces, each with the pieces before it. An
// engine computes thousands of tokens in one step, and a client's turn that comes meanwhile would wait for all of them.
// The worker with the fewest conversations gets the next one. So one that has come in place of another gets what that
// had, and there are few clients whom the moves could delay.
//
// # What is moved
//
// The value of a move is the time that the next turn saves, times the probability that it comes; the cost is the time
// that the same prompt takes now. So the probability alone decides: [Order] sorts by it, and leaves out what is not
// [probable]. It falls with the silence, in gaps between the turns so far. Conversations that had a turn a moment ago
// go first. One that is silent is moved after its next turn, which still comes to its old worker, or not at all.
//
// Not moved are sessions whose state is in the worker (SageMaker's opened sessions, stored responses), and what the
// router has not kept: long bodies, and requests for workers with roles.
package relocate
