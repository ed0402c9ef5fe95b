// Package resume makes one answer of two: of a stream that its worker broke off, and of another worker's that goes on
// with it. It knows no worker and no connection.
//
//	d := resume.New(kind, body)   // nil if the request is of no kind that another worker can go on with
//	d.Feed(p)                     // each piece that the client gets
//	ask, ok := d.Ask()            // what another worker is asked for, after the first one broke off
//	j := d.Join(stream)           // reads what the client gets of the other worker's stream
//
// # How another worker goes on
//
// The request is sent again with the text so far: a completion as a longer prompt, by token ids where the answer has
// them; a chat and Anthropic's messages as a chat whose last message the engine continues (continue_final_message);
// responses with a message in progress at the end. vLLM's /v1/messages has no such field, so its continuation is a
// chat, whose events are written as those of messages. Bounds on the tokens are lowered by those that were written.
//
// # What the client gets
//
// One answer: the id, the time and the role of the first stream, numbers and indices that go on, and a usage whose
// prompt is that of the first request. Engines count the text so far as a part of the second prompt. The sum of both
// counts is therefore right; where one ends and the other begins is known if the first stream named the prompt's count,
// and else is counted by the events that had text.
//
// # Stop strings
//
// vLLM holds back the text that may begin a stop string, so that a cut stands before it and the second worker finds the
// stop. With include_stop_str_in_output it does not. So [Joined] holds back the beginning of the second stream while it
// may complete a stop string that the first one began, and ends the answer there if it does.
//
// # What cannot be joined
//
// Join fails with [ErrOther] if the second stream is no continuation: it begins the text anew, thinks, or has events
// that are not known here. A second beginning is recognized by [sure] bytes that occur nowhere else in the text.
package resume
