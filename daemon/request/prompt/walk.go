package prompt

// Fields calls f with the name and the raw value of each field of a JSON object, in their order, until f returns
// false. It reports whether raw is one whole JSON text whose top level is an object, as Parse understands JSON. Both
// slices point into raw, except a name with escapes, which is valid until the next call.
func Fields(raw []byte, f func(name, value []byte) bool) bool {
	var s scanner
	s.reset(raw)
	s.skipMark()
	if s.at() != '{' {
		return false
	}
	going := true
	whole := s.object(func(name []byte) bool {
		lo := s.i
		if !s.value() {
			return false
		}
		going = going && f(name, raw[lo:s.i])
		return true
	})
	s.space()
	return whole && s.i == len(raw)
}

// Elements calls f with each raw value of a JSON array, as Fields does with those of an object.
func Elements(raw []byte, f func(value []byte) bool) bool {
	var s scanner
	s.reset(raw)
	s.skipMark()
	if s.at() != '[' {
		return false
	}
	going := true
	whole := s.array(func() bool {
		lo := s.i
		if !s.value() {
			return false
		}
		going = going && f(raw[lo:s.i])
		return true
	})
	s.space()
	return whole && s.i == len(raw)
}
