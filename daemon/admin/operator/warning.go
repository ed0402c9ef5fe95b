package operator

// Warning is something that an operator is to look at now. The page and warmpath top show all of them at the top.
type Warning struct {
	Grade   string `json:"grade"`            // bad: requests are lost or refused; warn: it serves, and something is wrong
	Title   string `json:"title"`            // in a few words
	Text    string `json:"text"`             // what, since when, why
	Command string `json:"command"`          // that shows details, or solves it
	Pool    string `json:"pool,omitempty"`   // whose it is
	Worker  string `json:"worker,omitempty"` // likewise; of several the first
}

// The grades of a warning.
const (
	bad  = "bad"
	warn = "warn"
)
