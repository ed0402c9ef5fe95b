package conf

import (
	"fmt"
	"slices"
	"strings"
)

// otherNames are the names that other programs, and the drafts of this one, have for keys.
var otherNames = map[string]string{"rpm": "requests_per_minute", "tpm": "tokens_per_minute", "aliases": "models",
	"header": "identity", "timeout": "header_timeout", "backends": "workers", "upstreams": "workers", "servers": "workers",
	"endpoints": "workers", "address": "url", "host": "url", "endpoint": "url", "bind": "listen", "port": "listen",
	"concurrency": "max_in_flight", "max_concurrency": "max_in_flight", "targets": "to", "api_keys": "keys",
	"key": "file", "secret": "file", "token": "file", "api_key": "file", "weights": "labels"}

// remedyFor offers the known key nearest to key, or lists them all if none is near.
func remedyFor(key string, known []string) string {
	if other := otherNames[key]; slices.Contains(known, other) {
		return fmt.Sprintf("did you mean %q?", other)
	}
	best := ""
	distance := len(key)/2 + 1
	for _, k := range known {
		if d := editDistance(strings.ToLower(key), k); d < distance {
			best = k
			distance = d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known here: " + strings.Join(known, ", ")
}

// editDistance is Levenshtein's, over bytes: keys are ASCII.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
