package exchange

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/overflow"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// maxHashed bounds the kept body whose prompt is hashed: 4 MiB of hashes. A longer one is routed by its model alone.
const maxHashed = 64 << 20

// readOn reads more of a body of which memory holds the beginning, if the request cannot be routed without it: until
// the model has come, or to the end. An answer that it returns refuses the request.
func readOn(ctx context.Context, r *request) *message.Outbound {
	in := r.in
	fault := missing(r)
	if fault == nil || r.epoch.Overflow.Most == 0 {
		return nil
	}
	most := r.epoch.Overflow.Longest()
	if in.Left > most-int64(len(in.Body)) {
		return r.refuse(faultOverflow)
	}
	err := keepMore(ctx, r, fault == &faultLateModel)
	switch failed := (*overflow.Failure)(nil); {
	case err == nil:
		if len(in.Body) > maxHashed {
			r.read.req.HasPrompt = false
		}
		return nil
	case ctx.Err() != nil:
		return r.abandon(ctx)
	case errors.As(err, &failed):
		r.journal.KeptNothing(r.in, r.epoch.Overflow.Dir, failed.Err)
		return r.refuse(faultNotKept)
	case !errors.Is(err, overflow.ErrFull):
		return r.refuse(message.BodyFault(err))
	case in.Kept == nil || in.Kept.Size() >= most-keptPiece: // of its own
		return r.refuse(faultOverflow)
	}
	r.journal.Meter.Shed("", FaultOverflowFull.Code)
	return r.refuse(FaultOverflowFull)
}

// keptPiece is more than what a body is short of that alone fills its client's part of the room.
const keptPiece = 64 << 10

// missing returns the fault of a request that the rest of its body may cure, or nil.
func missing(r *request) *message.Fault {
	if r.read.req.Kind == prompt.Tokenize {
		return nil
	}
	switch f := r.forbidden(); {
	case f == &faultUnreadBody, f == &faultLateModel:
		return f
	case f == nil && r.entry.Op != message.Closing && mayHideResponse(r):
		return &faultUnreadBody
	}
	return nil
}

// mayHideResponse reports whether hidesResponse refuses the request as it is, at some pool.
func mayHideResponse(r *request) bool {
	if r.entry.Door == nil {
		return r.read.hidesResponse(r.in, r.in.Path) != nil
	}
	return slices.ContainsFunc(r.epoch.Pools, func(p *epoch.Pool) bool {
		return r.read.hidesResponse(r.in, r.entry.Door.Target(p)) != nil
	})
}

// keepMore reads and keeps the body until it ends. If only the model is missing, it looks for that each time when twice
// as much has come, and stops when it finds it.
func keepMore(ctx context.Context, r *request, modelIsEnough bool) error {
	in := r.in
	k, err := r.kept.overflow.Keep(r.epoch.Overflow, in.Client(), in.Body)
	if err != nil {
		return err
	}
	in.Kept = k
	defer k.Seal()
	for ended := false; !ended; {
		had, goal := k.Size(), int64(math.MaxInt64)
		if modelIsEnough {
			goal = 2 * had
		}
		ended, err = k.Read(ctx, in.Tail, goal)
		if err != nil {
			return err
		}
		in.Body, err = k.Bytes()
		if err != nil {
			return err
		}
		if in.Left > 0 {
			in.Left -= k.Size() - had
		}
		r.read.release()
		r.parse()
		if !ended && modelIsEnough && r.read.req.Model != "" {
			in.Tail = &remainder{Tail: in.Tail}
			return nil
		}
	}
	in.Tail, in.Left = nil, 0
	return nil
}

// remainder is what a Tail has left. Of that nothing is gone, as what was read of the Tail is kept.
type remainder struct {
	message.Tail
	passed bool
}

// Read implements io.Reader.
func (r *remainder) Read(p []byte) (int, error) {
	r.passed = true
	return r.Tail.Read(p)
}

// Passed implements Tail.
func (r *remainder) Passed() bool { return r.passed }
