package events

// Fault is a way in which events go wrong.
type Fault string

// The faults.
const (
	NoFault   Fault = "none"
	Gap       Fault = "gap"       // messages get lost on the way
	Duplicate Fault = "duplicate" // messages come twice
	Reorder   Fault = "reorder"   // a message comes behind the next one
	Silence   Fault = "silence"   // the sockets are open, and neither events nor replays come
	Cut       Fault = "cut"       // the sockets are closed
)

// Faults lists all of them.
var Faults = []Fault{NoFault, Gap, Duplicate, Reorder, Silence, Cut}

func names() (out []string) {
	for _, f := range Faults {
		out = append(out, string(f))
	}
	return out
}
