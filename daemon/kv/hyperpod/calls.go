package hyperpod

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// keyOf returns the store's name of a bucket's key; "h" marks this door. The bucket's length keeps a:bc and ab:c apart.
func keyOf(bucket, key string) (string, error) {
	b, err := url.PathUnescape(bucket)
	if err != nil {
		return "", err
	}
	k, err := url.PathUnescape(key)
	if err != nil {
		return "", err
	}
	if b == "" || k == "" || len(b) > 255 {
		return "", errors.New("the bucket or the key is empty, or the bucket is longer than 255 bytes")
	}
	return "h" + string([]byte{byte(len(b))}) + b + k, nil
}

func answer(r *fasthttp.RequestCtx, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, nil // BUG: our own structs always fit
	}
	r.SetContentType("application/json")
	r.SetStatusCode(status)
	r.SetBody(text)
}

// put reads the body into its place. A key that has a value keeps it, as LMCache expects of blocks that never change.
func (s *Server) put(r *fasthttp.RequestCtx, bucket, rawKey string) {
	key, err := keyOf(bucket, rawKey)
	if err != nil {
		s.fail(r, http.StatusBadRequest, err.Error())
		return
	}
	length := int64(r.Request.Header.ContentLength())
	if length < 0 {
		s.fail(r, http.StatusLengthRequired, "send Content-Length: room is taken before the value is read")
		return
	}
	if length == 0 {
		s.fail(r, http.StatusBadRequest, "the value is empty: a lease of it would be a miss, and it would keep its key")
		return
	}
	if s.config.Store.Exists(key, nobody, 0) {
		s.drain(r)
		r.SetStatusCode(http.StatusConflict)
		return
	}
	first, err := s.firstPiece(r, length)
	if err != nil {
		s.broken(r, err, length)
		return
	}
	f, err := s.config.Store.Reserve(key, length)
	if err != nil {
		s.config.Log.Debug("the KV cache refused a value", "client", r.RemoteAddr(), "reason", err)
		if !errors.Is(err, kvstore.ErrTooLarge) { // otherwise the connection is closed: the body is not worth reading
			s.drain(r)
		}
		s.fail(r, statusOf(err), err.Error())
		return
	}
	torn := kvstore.Touch(func() { err = s.fill(r, f.Pieces(), first, length) })
	if torn != nil {
		f.Abort()
		r.SetConnectionClose()
		s.fail(r, http.StatusServiceUnavailable, torn.Error())
		return
	}
	if err != nil {
		f.Abort()
		s.broken(r, err, length)
		return
	}
	if !f.Commit(kvstore.Terms{When: kvstore.IfAbsent}) {
		r.SetStatusCode(http.StatusConflict)
		return
	}
	r.SetStatusCode(http.StatusOK)
}

// statusOf returns the status for a refused value. LMCache logs any status and goes on.
func statusOf(why error) int {
	switch {
	case errors.Is(why, kvstore.ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(why, kvstore.ErrKey):
		return http.StatusBadRequest
	case errors.Is(why, kvstore.ErrFull), errors.Is(why, kvstore.ErrWriting):
		return http.StatusInsufficientStorage
	}
	return http.StatusServiceUnavailable
}

// readPiece bounds the bytes of a value that one system call reads, as at the Redis listener.
const readPiece = 128 << 10

// leastRate is how many bytes a second a worker must send of a value, counted over the whole value and after pieceTime.
const leastRate = 1 << 20

// firstRoom is how much of a value must have come before memory is reserved for it.
const firstRoom = 8 << 10

// firstPiece reads the first piece of a body.
func (s *Server) firstPiece(r *fasthttp.RequestCtx, length int64) ([]byte, error) {
	if err := r.Conn().SetReadDeadline(time.Now().Add(pieceTime)); err != nil {
		return nil, err
	}
	first := make([]byte, min(length, firstRoom))
	n, err := io.ReadFull(r.RequestBodyStream(), first)
	s.counts.put.Add(uint64(n))
	return first, err
}

// fill copies the first piece and the rest of the body into their place. A worker has pieceTime for each piece, and the
// time of leastRate for all, because the value's memory cannot be used for anything else meanwhile.
func (s *Server) fill(r *fasthttp.RequestCtx, pieces [][]byte, first []byte, length int64) error {
	conn, body := r.Conn(), r.RequestBodyStream()
	due := time.Now().Add(pieceTime + time.Duration(length/leastRate)*time.Second)
	for _, p := range pieces {
		n := copy(p, first)
		first, p = first[n:], p[n:]
		for len(p) > 0 {
			next := time.Now().Add(pieceTime)
			if due.Before(next) {
				next = due
			}
			if err := conn.SetReadDeadline(next); err != nil {
				return err
			}
			n, err := body.Read(p[:min(len(p), readPiece)])
			s.counts.put.Add(uint64(n))
			p = p[n:]
			if err != nil && len(p) > 0 {
				return errors.Join(io.ErrUnexpectedEOF, err)
			}
		}
	}
	return nil
}

// broken answers a PUT whose value did not come in full. The door does not wait for the rest.
func (s *Server) broken(r *fasthttp.RequestCtx, err error, length int64) {
	r.SetConnectionClose()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		s.counts.stalled.Add(1)
		if s.stalls.Due(time.Now(), time.Minute) {
			s.config.Log.Warn("a worker stopped in the middle of a value", "client", r.RemoteAddr(), "bytes", length)
		}
	}
	s.fail(r, http.StatusBadRequest, "the body is shorter than its Content-Length")
}

// drain reads and drops a body, so that the connection can be used again.
func (s *Server) drain(r *fasthttp.RequestCtx) {
	if r.Request.Header.ContentLength() == 0 {
		return // there may be no stream
	}
	_ = r.Conn().SetReadDeadline(time.Now().Add(pieceTime))
	_, _ = io.Copy(io.Discard, r.RequestBodyStream()) // an error shows at the next request
}

// granted is the answer to a request for a lease.
type granted struct {
	ID      string   `json:"id"`
	Offsets []offset `json:"offsets"`
}

type offset struct {
	Offset int64 `json:"offset"`
	Len    int64 `json:"len"`
}

// lease answers with the place of the value. LMCache looks a key up by a lease that it releases at once, one key after
// the other, and reads it by another lease. So a value that is neither on this machine nor known to be in L2 is a miss
// that waits for no network. An answer without offsets would be a miss that LMCache never releases, so a value outside
// the segment is a plain miss.
func (s *Server) lease(r *fasthttp.RequestCtx, bucket, rawKey string) {
	key, err := keyOf(bucket, rawKey)
	if err != nil {
		s.fail(r, http.StatusBadRequest, err.Error())
		return
	}
	life, ok := lifeOf(string(r.QueryArgs().Peek("ttl_s")))
	if !ok {
		s.fail(r, http.StatusBadRequest, "ttl_s is to be seconds, above zero and at most "+MaxLease.String())
		return
	}
	var l *kvstore.Lease
	if s.config.Store.Exists(key, nobody, 0) {
		ctx, cancel := context.WithTimeout(context.Background(), waitOf(string(r.QueryArgs().Peek("timeout_ms"))))
		defer cancel()
		l = s.config.Store.Get(ctx, key, nobody)
	}
	if l == nil || len(l.Extents()) == 0 {
		if l != nil {
			l.Release()
		}
		s.counts.misses.Add(1)
		answer(r, http.StatusNotFound, map[string]string{"error": "miss"})
		return
	}
	if !l.Hold() {
		l.Release()
		s.fail(r, http.StatusServiceUnavailable, "workers hold half of the memory by leases and promises; release some")
		return
	}
	g := granted{Offsets: make([]offset, 0, len(l.Extents()))}
	for _, e := range l.Extents() {
		g.Offsets = append(g.Offsets, offset{Offset: e.Offset, Len: e.Len})
	}
	g.ID, ok = s.leases.add(l, key, time.Now().Add(life))
	if !ok {
		l.Release()
		s.fail(r, http.StatusServiceUnavailable, "too many leases are held; release them")
		return
	}
	s.counts.hits.Add(1)
	s.counts.leased.Add(uint64(l.Size()))
	answer(r, http.StatusOK, g)
}

// longestWait is LMCache's default for its wait for a lease.
const longestWait = 5 * time.Second

// waitOf parses timeout_ms, the time for which the worker waits.
func waitOf(text string) time.Duration {
	ms, err := strconv.Atoi(text)
	if err != nil || ms <= 0 || ms > int(longestWait.Milliseconds()) {
		return longestWait
	}
	return time.Duration(ms) * time.Millisecond
}

// lifeOf parses ttl_s. Without one it returns LMCache's default.
func lifeOf(text string) (time.Duration, bool) {
	if text == "" {
		return 30 * time.Second, true
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(seconds) || seconds <= 0 || seconds > MaxLease.Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// releaseOf ends a lease of that key alone: another key means that the worker has mixed its leases up.
func (s *Server) releaseOf(r *fasthttp.RequestCtx, bucket, rawKey, id string) {
	key, err := keyOf(bucket, rawKey)
	if err != nil {
		s.fail(r, http.StatusBadRequest, err.Error())
		return
	}
	s.release(r, id, key)
}

// release ends a lease of the key, or of any with "".
func (s *Server) release(r *fasthttp.RequestCtx, id, key string) {
	if !s.leases.release(id, key) {
		s.fail(r, http.StatusNotFound, "there is no such lease of this key; its time may be over")
		return
	}
	r.SetStatusCode(http.StatusOK)
}
