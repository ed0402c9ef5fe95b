package vllmsim

import (
	"net/http"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// form is the shape of one answer: of chat and completions, of responses, of messages. It holds the job that it shows.
type form interface {
	// body appends the body of a plain answer.
	body(b []byte) []byte
	// open writes what a stream begins with, before there is a token.
	open(v *sse)
	// token writes new tokens of a choice and, if it has ended, its end.
	token(v *sse, p piece)
	// close writes what stands behind the last token.
	close(v *sse)
	// fail writes an error in the midst of a stream, and what vLLM sends behind it.
	fail(v *sse, e *apiError)
}

// piece is what is new of one choice: its tokens [from, to), and how it ended.
type piece struct {
	choice   int // index of it
	from, to int
	first    bool // nothing has been written of the choice
	end      engine.Finish
}

// task is an inference request that has been read and found good.
type task struct {
	*job
	form form
	// ready is called once all is generated and before the answer reports it; may be nil.
	ready func()
	// background answers at once and cares for the choices; nil where the answer waits for them.
	background func(http.ResponseWriter)
}
