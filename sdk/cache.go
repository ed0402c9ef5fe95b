package sdk

import (
	"errors"
	"math"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// Why a wish for a cache is not passed on. A wish that is passed on may still come to nothing: warmpath why has what
// was done.
var (
	ErrNoRow  = errors.New("sdk: no worker has that row, or nothing is being decided; call it in Route")
	ErrWishes = errors.New("sdk: one decision may ask for eight things to be done with caches; ask for less")
)

// KeepCache asks for the prompt to be kept where it is answered for so many seconds, as for a client that is expected
// back: the worker gets it again now and then, so that its cache holds it to be in use. The next turn ends that.
func KeepCache(seconds float64) error { return wish(abi.CacheKeep, 0, seconds*1000, "") }

// DropCache says that the session of that name, "" for the request's own, has ended: nothing of it is kept or moved.
func DropCache(session string) error { return wish(abi.CacheDrop, 0, 0, session) }

// Prefetch asks for worker i to hold the prompt so many seconds after the answer. The next turn, which may go
// anywhere, ends that.
func Prefetch(i int, seconds float64) error { return wish(abi.CachePrefetch, i, seconds*1000, "") }

// CopyPrefix asks for worker i to hold the first blocks of the prompt too, as a text that many conversations begin
// with.
func CopyPrefix(blocks, i int) error { return wish(abi.CacheCopy, i, float64(blocks), "") }

func wish(what int32, i int, amount float64, session string) error {
	switch imports.Cache(what, int32(i), uint32(min(max(amount, 0), math.MaxInt32)), session) {
	case 0:
		return nil
	case abi.ErrLimit:
		return ErrWishes
	}
	return ErrNoRow
}
