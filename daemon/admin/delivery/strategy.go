package delivery

import (
	"fmt"
	"strings"
	"time"
)

// Why is the reason for a refusal.
type Why int

// The reasons for a refusal.
const (
	Unnamed   Why = iota + 1 // the name is none, or taken
	Unknown                  // there is no such strategy or pool
	Conflict                 // with the folder, or with the file
	BadModule                // the module cannot serve
	Broken                   // the folder cannot be written
)

// Refusal is what is refused, why, and what to do.
type Refusal struct {
	Why  Why
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

func refuse(why Why, format string, a ...any) error {
	return &Refusal{Why: why, Text: fmt.Sprintf(format, a...)}
}

// Service is what a strategy does for a pool.
type Service struct {
	Pool      string     `json:"pool"`
	As        string     `json:"as"`                    // live, canary or shadow
	Activated *time.Time `json:"activated,omitempty"`   // by the admin API
	InsteadOf string     `json:"in_place_of,omitempty"` // what the configuration file names
}

// Strategy is one that there is.
type Strategy struct {
	Name   string    `json:"name"`
	Source string    `json:"source"` // built-in, folder, or file: the configuration names its path
	Path   string    `json:"path,omitempty"`
	SHA256 string    `json:"sha256,omitempty"` // of the module as it stands there; none: it cannot be read
	Bytes  int       `json:"bytes"`
	Serves []Service `json:"serves"`
}

// Sources of a strategy.
const (
	BuiltIn = "built-in"
	Folder  = "folder"
	File    = "file"
)

// Setting is the part of the configuration in force that a Store needs.
type Setting struct {
	Dir        string // "" = there is none
	Pools      []string
	Strategies []Strategy // without sum and size
}

// serving is the strategy that serves a pool, and the one that the configuration file names for it.
type serving struct{ name, named string }

// live returns the strategy that serves a pool.
func (now *Setting) live(pool string) (serving, error) {
	for _, have := range now.Strategies {
		for _, v := range have.Serves {
			switch {
			case v.Pool != pool || v.As != Live:
			case v.InsteadOf != "":
				return serving{name: have.Name, named: v.InsteadOf}, nil
			default:
				return serving{name: have.Name, named: have.Name}, nil
			}
		}
	}
	return serving{}, refuse(Unknown, "there is no pool %.80q; there are %s", pool, strings.Join(now.Pools, ", "))
}

// What a strategy is for a pool.
const (
	Live   = "live"
	Canary = "canary"
	Shadow = "shadow"
)
