package sdk

import (
	"errors"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// What [SetOwn] does not keep.
var (
	ErrNoNumber = errors.New("sdk: NaN and infinities are no numbers of a worker; keep the one before")
	ErrNoWorker = errors.New("sdk: no worker of the pool has that key: it has left, or no request has seen it yet")
)

// SetOwn makes value the strategy's own number for the worker of that key, [Worker].Key or Outcome.Key. All instances
// read it as [Worker].Own from the next pick on, and in a callback by [Own]: what one of them learns, all know. The
// host keeps it while the pool has the worker and the module stays the same, over reloads; a new version of the module
// begins with 0.
func SetOwn(key uint64, value float64) error {
	switch imports.SetOwn(key, value) {
	case 0:
		return nil
	case abi.ErrInvalid:
		return ErrNoNumber
	}
	return ErrNoWorker
}

// Own returns the number that [SetOwn] has set, 0 if none was. Route can use [Worker].Own instead, which costs nothing.
// The callbacks come one after the other, so that one which reads it, and then sets it, loses nothing of another.
func Own(key uint64) float64 { return imports.Own(key) }
