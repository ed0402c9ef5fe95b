package admission

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

// ReadOn reads more of a body of which memory holds the beginning, if the request cannot be routed without it: until
// the model has come, or to the end. A fault that it returns refuses the request.
func ReadOn(ctx context.Context, r *Request) *message.Fault {
	in := r.In
	fault := missing(r)
	if fault == nil || r.Epoch.Overflow.Most == 0 {
		return nil
	}
	most := r.Epoch.Overflow.Longest()
	if in.Left > most-int64(len(in.Body)) {
		return &faultOverflow
	}
	err := keepMore(ctx, r, fault == &faultLateModel)
	switch failed := (*overflow.Failure)(nil); {
	case err == nil:
		if len(in.Body) > maxHashed {
			r.Read.Req.HasPrompt = false
		}
		return nil
	case ctx.Err() != nil:
		return &message.FaultGone
	case errors.As(err, &failed):
		r.Journal.KeptNothing(r.In, r.Epoch.Overflow.Dir, failed.Err)
		return &faultNotKept
	case !errors.Is(err, overflow.ErrFull):
		f := message.BodyFault(err)
		return &f
	case int64(len(in.Body)) > most || in.Kept != nil && in.Kept.Size() >= most-keptPiece: // of its own
		return &faultOverflow
	}
	r.Journal.Meter.Shed("", FaultOverflowFull.Code)
	return &FaultOverflowFull
}

// keptPiece is larger than the rest of a body that alone fills its client's part of the store.
const keptPiece = 64 << 10

// missing returns the fault of a request that the rest of its body may cure, or nil.
func missing(r *Request) *message.Fault {
	if r.Read.Req.Kind == prompt.Tokenize {
		return nil
	}
	switch f := r.Forbidden(); {
	case f == &faultUnreadBody, f == &faultLateModel:
		return f
	case f == nil && r.Entry.Op != message.Closing && mayHideResponse(r):
		return &faultUnreadBody
	}
	return nil
}

// mayHideResponse reports whether hidesResponse refuses the request as it is, at some pool.
func mayHideResponse(r *Request) bool {
	if r.Entry.Door == nil {
		return r.Read.hidesResponse(r.In, r.In.Path) != nil
	}
	return slices.ContainsFunc(r.Epoch.Pools, func(p *epoch.Pool) bool {
		return r.Read.hidesResponse(r.In, r.Entry.Door.Target(p)) != nil
	})
}

// keepMore reads and keeps the body until it ends. If only the model is missing, it looks for that each time when twice
// as much has come, and stops when it finds it.
func keepMore(ctx context.Context, r *Request, modelIsEnough bool) error {
	in := r.In
	k, err := r.Kept.Overflow.Keep(r.Epoch.Overflow, in.Client(), in.Body)
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
		r.Read.release()
		r.Parse()
		if !ended && modelIsEnough && r.Read.Req.Model != "" {
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
