package attempt

import (
	"bytes"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// Bounds on what is read of an answer for the ids in it. One that names a job has some 1 KB.
const (
	maxJobAnswer = 64 << 10
	maxJobReads  = 64 // of an answer that comes in pieces
)

// jobReader reads which jobs an answer names.
type jobReader struct {
	text  []byte
	reads int
	ids   [3]string // as in prompt.JobIDs
}

// read takes the next piece of the answer, and returns the ids that are new with it.
func (j *jobReader) read(p []byte) (now [3]string) {
	if len(j.text)+len(p) > maxJobAnswer || j.reads == maxJobReads {
		return now
	}
	j.text = append(j.text, p...)
	if !bytes.HasSuffix(bytes.TrimRight(j.text, " \r\n\t"), []byte("}")) { // the ids stand in an object
		return now
	}
	j.reads++
	id, files := prompt.JobIDs(j.text)
	for i, id := range [...]string{id, files[0], files[1]} {
		if id != j.ids[i] {
			j.ids[i], now[i] = id, id
		}
	}
	return now
}
