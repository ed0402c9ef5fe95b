package conf

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// specimen shows what a value of each kind looks like.
var specimen = map[string]string{
	"text":                       `it in "quotes"`,
	"whole number":               "digits, as 1000",
	"number":                     "digits, as 2.5",
	"true or false":              "true or false, without quotes",
	"duration":                   `"10s", "1m30s" or "250ms"`,
	"text, number or true/false": "a single value; lists and tables do not reach a strategy",
}

// addresses are the last words of the keys that take the HOST:PORT of a listener.
var addresses = []string{"listen", "admin", "resp", "hyperpod"}

// remedyOf returns how to write the value at path, which has the wrong type. It guesses what the user meant, if it can.
func remedyOf(path string, v any, what string) string {
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch v := v.(type) {
	case int64:
		if what == "text" && slices.Contains(addresses, last) && v > 0 && v <= 65535 {
			return fmt.Sprintf(`write an address, as "127.0.0.1:%d", or ":%d" for all interfaces`, v, v)
		}
	case string:
		isBytes := strings.Contains(last, "bytes") || strings.HasSuffix(last, "_mb")
		if n, ok := sizeOf(v, isBytes); ok && what == "whole number" {
			if strings.HasSuffix(last, "_mb") && n >= 1<<20 {
				n >>= 20
			}
			return fmt.Sprintf("write %d, without quotes or a unit", n)
		}
	}
	return "write " + specimen[what]
}

var sizes = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *(?:([kKmMgGtT])(i?)[bB]?|[bB])?$`)

// sizeOf reads a number of bytes with a unit, as 4GiB, 64 MB or 512M, or of something else, as 200k; without a unit it
// is the number itself.
func sizeOf(text string, isBytes bool) (n int64, ok bool) {
	m := sizes.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, false
	}
	x, err := strconv.ParseFloat(m[1], 64)
	step := 1024.0
	if m[3] == "" && (!isBytes || strings.HasSuffix(strings.ToLower(text), "b")) { // as in 64 MB
		step = 1000
	}
	for range strings.Index("kmgt", strings.ToLower(m[2])) + min(1, len(m[2])) {
		x *= step
	}
	return int64(x), err == nil && x < 1<<62
}

// another are the forms for which TOML may be mistaken, each by how its first line begins that is no comment.
var another = []struct {
	name   string
	begins *regexp.Regexp
}{
	{"JSON", regexp.MustCompile(`^[{]`)},
	{"YAML", regexp.MustCompile(`^(---|- |"?[A-Za-z_][\w.-]*"? *:( |$))`)},
}

// formOf returns the name of the form that a document has in place of TOML, "" if it is not known.
func formOf(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		for _, form := range another {
			if form.begins.MatchString(line) {
				return form.name
			}
		}
		return ""
	}
	return ""
}
