package tokens

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Rules of trust. Prompts are of one class that have the same model, kind and values of all fields that /tokenize does
// not know.
const (
	needed     = 2                // equal ids, of answers and of /tokenize, before a class with such fields is asked for
	auditEvery = 64               // of a class's prompts whose ids were asked for, one is compared with its answer's
	distrust   = 10 * time.Minute // after a difference: the worker may get another template or version
	maxClasses = 1024             // that are remembered
)

// trust keeps for which prompts /tokenize gives the ids that the engine has. It is safe for concurrent use.
type trust struct {
	mu sync.Mutex // guards of
	of map[digest]*verdict
}

// verdict is that of one class.
type verdict struct {
	equal int       // comparisons without a difference since the last one with
	asked uint32    // prompts whose ids were asked for
	until time.Time // not trusted
}

// class returns the verdict of a class. The caller holds t.mu.
func (t *trust) class(d digest) *verdict {
	v := t.of[d]
	if v == nil {
		if t.of == nil || len(t.of) >= maxClasses {
			t.of = map[digest]*verdict{}
		}
		v = new(verdict)
		t.of[d] = v
	}
	return v
}

// allows reports whether /tokenize may be asked for a prompt: plain ones at once, any other when its class was seen to
// be right.
func (t *trust) allows(q *Question, now time.Time) bool {
	if q.kind != prompt.Chat && q.kind != prompt.Completion {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.class(q.class)
	return !now.Before(v.until) && (q.plain || v.equal >= needed)
}

// isOpen reports whether it is not known yet if /tokenize is right for a class.
func (t *trust) isOpen(class digest, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.class(class)
	return v.equal < needed && !now.Before(v.until)
}

// wantsProof reports whether the ids of a prompt, which were asked for, are to be compared with those of its answer.
func (t *trust) wantsProof(class digest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.class(class)
	v.asked++
	return v.equal < needed || v.asked%auditEvery == 0
}

// compared records a comparison. It reports a difference.
func (t *trust) compared(class digest, equal bool, now time.Time) (differs bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.class(class)
	if equal {
		v.equal = min(v.equal+1, needed)
		return false
	}
	v.equal, v.until = 0, now.Add(distrust)
	return true
}
