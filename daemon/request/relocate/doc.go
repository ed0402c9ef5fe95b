// Package relocate moves conversations away from a worker before it leaves, so that their next turns do not have to
// compute their whole prompts again.
//
// # How
//
// A [Book] keeps the last request of each conversation whose worker has answered it, within a bound of memory. It needs
// no names: a prompt that continues the last prompt of a conversation belongs to that conversation.
//
// When a worker is about to leave, [Book.Leave] returns its conversations, those that are likely to go on first. The
// caller drains the worker, and sends each conversation's last prompt to another worker with an answer of one token. So
// the other worker holds it. Until [Book.Moved], [Book.Home] returns the leaving worker for the conversation: its next
// turn still finds its cache there.
//
// # What is moved
//
// The value of a move is the time that the next turn saves, times the probability that it comes; the cost is the time
// that the same prompt takes now. So the probability alone decides: [Order] sorts by it. It follows from the gaps
// between the turns so far. A conversation that has been silent for [stale] times its usual gap is not moved.
//
// Not moved are sessions whose state is in the worker (SageMaker's opened sessions, stored responses), and what the
// router has not kept: long bodies, and requests for workers with roles.
package relocate
