// Package traffic makes what clients send to a simulated fleet: chats of turns, drawn by a seed or read from a trace.
//
// # Prompts
//
// A prompt is a list of [Part]s. A part is a number and a length; the same number is the same text, so two prompts
// share exactly the beginning that their parts share. [AppendText] makes the text of it, letters of which the simulated
// engine makes one token every 4 bytes. A turn's answer is a part of the next turn's prompt too, with the very tokens
// that the engine generates for its number ([Turn].Answer). So the cache reaches over answers, as in a real chat.
//
// # Time
//
// A turn comes a while after the turns that it waits for have ended ([Turn].After): a client reads an answer before it
// writes on. Chats begin by an open loop, at their [Chat].Start whatever the fleet does, or by a closed one of so many
// clients ([Load].Clients). In an open loop an overload shows as a queue, in a closed one as less throughput. Traces
// are open loops in each request, as their times are all that was recorded.
//
// why.md has the reasons and the details, and what lost.
package traffic
