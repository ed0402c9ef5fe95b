package prompt

// state is how far an answer has come. It is three enums, and each only moves down its list:
//
//	event             reach          end         failure
//	an event          begun          -           -
//	output            output         -           -
//	the proper end    -              clean       -
//	a failure         -              -           implied or reported, with the first code that was given
//	another's id      -              -           foreign
//	not understood    output (1)     spoiled     -
//	Finish            -              whole (2)   -
//
// (1) What is not understood must not be held back, unless a failure came before it. (2) From clean alone, without a
// failure, and if every answer ended by itself.
type state struct {
	reach   reach
	end     end
	failure failure
	code    int // the status given with the failure, 0 if none is
}

// reach is what came so far.
type reach uint8

const (
	reachNothing reach = iota
	reachBegun         // events, and nothing in them that a client takes for output
	reachOutput        // a piece of text, thought or call, or an end other than a failure
)

// end is how an answer ended.
type end uint8

const (
	endOpen    end = iota // it has not
	endClean              // properly, by the rule of its kind
	endWhole              // so did each of its choices, and all of it was understood
	endSpoiled            // something was not understood or is too large: nothing more is read
)

// failure is how an answer reported that the worker failed.
type failure uint8

const (
	failureNone     failure = iota
	failureImplied          // by an end: abort, error, or no output at all
	failureReported         // in an error event or body, which a client understands
	failureForeign          // the answer belongs to another request
)

// sawEvent records that an event came.
func (s *state) sawEvent() { s.reach = max(s.reach, reachBegun) }

// sawOutput records that something came which a client takes for output.
func (s *state) sawOutput() { s.reach = reachOutput }

// sawEnd records the proper end.
func (s *state) sawEnd() { s.end = max(s.end, endClean) }

// fail records a failure, and the first code given with one.
func (s *state) fail(how failure, code int) {
	s.failure = max(s.failure, how)
	if s.code == 0 {
		s.code = code
	}
}

// spoil records that nothing more can be read.
func (s *state) spoil() {
	s.end = endSpoiled
	if !s.failed() {
		s.reach = reachOutput
	}
}

// finish records the end of the body, and reports whether the answer is whole. ended: each of its choices ended by
// itself.
func (s *state) finish(ended bool) (whole bool) {
	if s.end == endClean && !s.failed() && ended {
		s.end = endWhole
	}
	return s.end == endWhole
}

func (s *state) hasOutput() bool { return s.reach == reachOutput }
func (s *state) failed() bool    { return s.failure != failureNone }
func (s *state) spoiled() bool   { return s.end == endSpoiled }

// clean reports whether the proper end came.
func (s *state) clean() bool { return s.end == endClean || s.end == endWhole }
