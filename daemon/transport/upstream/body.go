package upstream

import "io"

// framing is the way to find the end of a body.
type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose
)

// body takes the framing off an answer's body.
type body struct {
	framed framing
	left   int64 // of a body of known length
	chunks chunks
}

// take moves body from src to dst. It returns how much of both it used. Its error is io.EOF when the body is whole.
func (b *body) take(dst, src []byte) (n, used int, err error) {
	switch b.framed {
	case byChunks:
		n, used, err = b.chunks.decode(dst, src)
		if err == nil && b.chunks.at == atEnd {
			err = io.EOF
		}
		return n, used, err
	case byLength:
		n = copyApart(dst, src[:min(int64(len(src)), b.left)])
		b.left -= int64(n)
		if b.left == 0 {
			err = io.EOF
		}
		return n, n, err
	}
	n = copyApart(dst, src)
	return n, n, nil
}

// copyApart is copy, but free where both are the same memory already.
func copyApart(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n > 0 && &dst[0] != &src[0] {
		copy(dst, src[:n])
	}
	return n
}
