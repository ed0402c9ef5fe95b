package tokens

import (
	"context"
	"io"
	"slices"
	"time"
)

// maxLesson bounds the body whose answer is to name its ids: they come as text, some 7 bytes each.
const maxLesson = 256 << 10

// Lesson is what is to be learnt from the answer to a request whose body is [WithIDs].
type Lesson struct {
	source *Source
	key    digest
	class  digest
	parts  digest   // the context of a chat that was put together of parts; zero = it was not
	had    []uint32 // the ids that were asked for, nil if there were none
	query  *query   // what /tokenize is to be asked for, to be compared; nil = nothing
}

// Lesson returns what the request's answer is to teach: the ids that were not had in time, or whether those that were
// had are right. nil = nothing, which is most often so, as the ids of a long prompt make a long answer.
func (s *Source) Lesson(r Request, ids []uint32, o Outcome) *Lesson {
	q := r.Question
	if !s.set.Load().Learn || !q.mayLearn || q.why != "" || len(r.Body) > maxLesson {
		return nil
	}
	l := &Lesson{source: s, key: q.key, class: q.class}
	switch o {
	case Asked, Extended:
		if !s.trust.wantsProof(q.class) {
			return nil
		}
		l.had = ids
		if o == Extended {
			l.parts = q.context
		}
	case Late, Failed, Busy, Nobody:
	case Unsupported: // neither a render nor a class that is known to be right
		if !s.trust.isOpen(q.class, time.Now()) {
			return nil
		}
		l.query = &query{of: Group{q.model, q.Fence}, tokenize: tokenizeBody(q, r.Body)}
	default:
		return nil
	}
	return l
}

// Strip returns a reader of the answer as it would be without the lesson.
func (l *Lesson) Strip(from io.Reader, events bool) *Stripper {
	return NewStripper(from, events, l.learn)
}

// learn takes the ids that an answer has for the prompt.
func (l *Lesson) learn(ids []uint32) {
	s := l.source
	s.cache.put(ids, []digest{l.key}, []int{len(ids)})
	switch {
	case l.parts != digest{}: // what is wrong may be either
		s.hinges.compared(l.parts, slices.Equal(l.had, ids), time.Now())
	case l.had != nil:
		s.compare(l.class, l.had, ids)
	case l.query != nil:
		s.prove(l.class, l.query, ids)
	}
}

// compare records whether a worker's /tokenize or render gave what its engine has.
func (s *Source) compare(class digest, asked, has []uint32) {
	if s.trust.compared(class, slices.Equal(asked, has), time.Now()) {
		s.warned.Warn(s.log, "differs", "a worker's /tokenize or render gives other token ids than its engine has: such "+
			"prompts are routed by their text, or by ids that answers have named", "asked", len(asked), "has", len(has))
	}
}

// prove asks /tokenize in the background, and compares.
func (s *Source) prove(class digest, a *query, has []uint32) {
	s.mu.Lock()
	free := s.asked < maxFlights/2
	if free {
		s.asked++
	}
	s.mu.Unlock()
	if !free {
		return
	}
	go func() {
		defer func() {
			s.mu.Lock()
			s.asked--
			s.mu.Unlock()
		}()
		ctx, stop := context.WithTimeout(context.Background(), longest)
		defer stop()
		if ids, err := s.asker.ask(ctx, a); err == nil {
			s.compare(class, ids, has)
		}
	}()
}
