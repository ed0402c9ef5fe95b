// Package breaks finds out where the prompts of an API key's sessions stop being alike from turn to turn, near their
// beginning. A date, an id or a counter there makes the engines compute again all that follows, at each turn. Moving
// this part behind the constant text improves the hit rate most, and nothing else shows where it is.
//
// [Book.Note] compares the hashes of a prompt's first blocks with those of the turn before. Where they part is known to
// the block, and after some turns to eight bytes: [Book.Watch] then names the block whose text is to be hashed in
// pieces. No text is kept, only hashes that are made with the namespace's secret.
package breaks
