package prompt

import "bytes"

// references are the fields in which the body of a new job names a file or a job that one worker alone has: a batch
// its input, a video the one that it continues.
var references = [...]string{"input_file_id", "file_id", "video_id", "image_id", "input_reference", "image_reference",
	"video", "training_file"}

// insideReference are the fields of such a field that is an object.
var insideReference = [...]string{"id", "file_id", "video_id"}

// Reference returns the id of the file or job that a JSON body names, "" if it names none. The first that is an id
// counts: the same fields hold pictures and URLs too.
func Reference(body []byte) string {
	var s scanner
	s.reset(body)
	id := ""
	s.document(func(key []byte) bool { return s.readReference(key, references[:], &id) })
	return id
}

// readReference scans a field, and sets id if it is one of the names and the first with an id.
func (s *scanner) readReference(key []byte, names []string, id *string) bool {
	known := false
	for _, name := range names {
		known = known || string(key) == name
	}
	switch {
	case *id != "" || !known:
		return s.value()
	case s.at() == '{' && len(names) == len(references):
		return s.object(func(key []byte) bool { return s.readReference(key, insideReference[:], id) })
	}
	var v span
	ok := s.locate(&v)
	if raw := Inside(v.of(s.b)); ok && isID(raw) {
		*id = string(raw)
	}
	return ok
}

// FormReference does as Reference for a form. Clients write an object's field as input_reference[file_id].
func FormReference(contentType string, body []byte) string {
	f := formReader{}
	if !f.begin(contentType, body) {
		return ""
	}
	for i := 0; i < maxFormParts && f.part(); i++ {
		if f.reference != "" {
			break
		}
	}
	return f.reference
}

// keepReference records the value of a field that names a file or a job.
func (f *formReader) keepReference(name string, value []byte) {
	for _, known := range references {
		if isLike(name, known) && isID(value) {
			f.reference = string(value)
		}
	}
}

// JobIDs returns the ids of what the worker now keeps, as its answer in JSON names them: the id of a new job or file,
// and the files that a batch wrote. Each is "" if the answer has none. If the answer is cut, JobIDs returns the values
// that are complete.
func JobIDs(answer []byte) (id string, files [2]string) {
	var s scanner
	s.reset(answer)
	s.document(func(key []byte) bool {
		switch string(key) {
		case "id":
			return s.readJobID(&id)
		case "output_file_id":
			return s.readJobID(&files[0])
		case "error_file_id":
			return s.readJobID(&files[1])
		}
		return s.value()
	})
	return id, files
}

// readJobID scans an id, a text or a number.
func (s *scanner) readJobID(id *string) bool {
	var v span
	if !s.locate(&v) {
		return false
	}
	raw := v.of(s.b)
	if text := Inside(raw); text != nil {
		raw = text
	} else if s.i == len(s.b) || len(bytes.Trim(raw, "0123456789")) > 0 { // a number may go on behind the cut
		return true
	}
	if isID(raw) {
		*id = string(raw)
	}
	return true
}

// isID reports whether a text can be an id in a path. URLs and pictures are none.
func isID(text []byte) bool {
	for _, c := range text {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', bytes.IndexByte([]byte("-_.:@"), c) >= 0:
		default:
			return false
		}
	}
	return len(text) > 0 && len(text) <= maxID
}
