package gate

import "unicode/utf8"

// MaxText bounds, in bytes, what a log line or an answer repeats of a client's own words: a model's name, a path, a
// method. The longest name of a model that people use is under 100; a request of 8 MB that is nothing but a name
// would be a line of 8 MB.
const MaxText = 256

// cutMark ends a text that was cut.
const cutMark = "..."

// Cut returns s if it is at most MaxText bytes long, else its beginning and three dots, MaxText bytes in all at most.
// It cuts between two characters, so that UTF-8 stays UTF-8. It keeps no part of a long s alive: what is cut off can
// be collected.
func Cut(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText - len(cutMark)
	for back := 0; back < utf8.UTFMax && !utf8.RuneStart(s[end]); back++ {
		end--
	}
	return s[:end] + cutMark // a new string
}
