package prompt

import (
	"fmt"
	"testing"
)

// TestStates is the table of state.go: what each event does to each state that a stream reaches.
func TestStates(t *testing.T) {
	moves := map[byte]func(*state){
		'e': func(s *state) { s.sawEvent() },
		'o': func(s *state) { s.sawOutput() },
		'd': func(s *state) { s.sawEnd() },
		'f': func(s *state) { s.fail(failureImplied, 0) },
		'r': func(s *state) { s.fail(failureReported, 503) },
		'R': func(s *state) { s.fail(failureReported, 400) },
		'x': func(s *state) { s.spoil() },
		'w': func(s *state) { s.finish(true) },
		'p': func(s *state) { s.finish(false) },
	}
	f := func(path, want string) {
		t.Helper()
		s := state{}
		for i := range len(path) {
			moves[path[i]](&s)
		}
		got := ""
		for _, known := range []struct {
			letter byte
			is     bool
		}{
			{'O', s.hasOutput()}, {'C', s.clean()}, {'W', s.end == endWhole}, {'X', s.spoiled()},
			{'F', s.failed()}, {'R', s.failure == failureReported},
		} {
			if known.is {
				got += string(known.letter)
			}
		}
		if s.code != 0 {
			got += fmt.Sprint(s.code)
		}
		if got != want {
			t.Errorf("%s: %s; want %s", path, got, want)
		}
	}
	f("", "")
	f("e", "")
	f("eo", "O")
	f("eoe", "O") // an event with nothing in it takes no output back
	f("eod", "OC")
	f("eodw", "OCW")
	f("eodp", "OC") // some choice has no end
	f("eow", "O")   // no end came
	f("edw", "CW")
	f("ef", "F")
	f("efr", "FR503")
	f("er", "FR503")
	f("erR", "FR503") // the first code counts
	f("erf", "FR503")
	f("erdw", "CFR503") // a failure is never whole
	f("ex", "OX")       // what is not understood is not held back
	f("efx", "XF")      // unless the worker failed before
	f("eodx", "OX")
	f("exd", "OX") // nothing mends it
	f("exw", "OX")
	f("exdw", "OX")
}

func TestFieldNames(t *testing.T) {
	if fieldUnknown > 64 {
		t.Fatalf("%d fields; fields.seen has 64 bits", fieldUnknown)
	}
	named := 0
	for length, alike := range fieldNames {
		for _, n := range alike {
			named++
			if len(n.name) != length || fieldNamed([]byte(n.name)) != n.bodyField {
				t.Errorf("%s is found as %d; want %d", n.name, fieldNamed([]byte(n.name)), n.bodyField)
			}
			for _, other := range []string{n.name[1:], n.name + "s", "x" + n.name[1:]} {
				if f := fieldNamed([]byte(other)); f == n.bodyField && other != "queries" && other != "query" {
					t.Errorf("%s is taken for %s", other, n.name)
				}
			}
		}
	}
	if named != 42 || fieldNamed(nil) != fieldUnknown || fieldNamed([]byte("MODEL")) != fieldUnknown {
		t.Errorf("%d names", named)
	}
}

// A field that is not in this body is not found in it, whatever the body before had.
func TestFieldsAreForgotten(t *testing.T) {
	var p Parser
	if _, err := p.Parse(Completion, []byte(`{"prompt":"a long one","n":3,"echo":true,"stream_options":{"include_usage":true}}`)); err != nil {
		t.Fatal(err)
	}
	r, err := p.Parse(Completion, []byte(`{"stream_options":{"include_usage":true},"stream_options":{}}`))
	if err != nil || r.HasPrompt || r.N != 1 || r.fixed || r.IncludeUsage || r.fields.raw(fieldPrompt) != nil {
		t.Errorf("%+v, %v", r, err)
	}
}
