package kvevents

import (
	"encoding/binary"
	"math"
)

// An event message is [topic, sequence as 8 bytes big-endian, payload]. Frames that a later release may append are left
// alone.
func splitMessage(frames [][]byte) (topic []byte, seq uint64, payload []byte, ok bool) {
	if len(frames) < 3 || len(frames[1]) != 8 {
		return nil, 0, nil, false
	}
	return frames[0], binary.BigEndian.Uint64(frames[1]), frames[2], true
}

// endOfReplay is the sequence of the message that ends a replay.
const endOfReplay = math.MaxUint64

// A replay's answer is [empty, sequence, payload] up to vLLM 0.25 and [empty, topic, sequence, payload] from 0.26 on:
// the payload is the last frame, and the sequence is the frame before it. The last answer has endOfReplay and an empty
// payload.
func splitAnswer(frames [][]byte) (seq uint64, payload []byte, ok bool) {
	n := len(frames)
	if n < 3 || len(frames[0]) != 0 || len(frames[n-2]) != 8 {
		return 0, nil, false
	}
	return binary.BigEndian.Uint64(frames[n-2]), frames[n-1], true
}

// question asks for all from a sequence on. The publisher answers to exactly these frames, and to nothing else.
func question(from uint64) [][]byte { return [][]byte{nil, binary.BigEndian.AppendUint64(nil, from)} }
