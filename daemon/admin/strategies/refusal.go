package strategies

import "fmt"

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
