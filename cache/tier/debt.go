package tier

// debt is what Redis has yet to be given of an entry. The order matters: a touch leaves a larger debt as it is. The
// table of what leads from one to the other stands in doc.go.
type debt uint8

const (
	paid       debt = iota // Redis has it, or there is none
	oweTouch               // a longer life
	oweReplace             // a value, if Redis has the entry's base or nothing: else Redis's value stands
	oweSet                 // a value, whatever Redis has
	oweDrop                // that it is deleted, if Redis has the entry's base: the entry is a tombstone
	oweDelete              // that it is deleted, whatever Redis has: the same
)

// tombstone reports whether the entry of this debt stands for a deletion.
func (d debt) tombstone() bool { return d >= oweDrop }

// givesWay reports whether the entry of this debt yields to what Redis has instead of its base.
func (d debt) givesWay() bool { return d == oweReplace || d == oweDrop }

// String is for test output.
func (d debt) String() string {
	return [...]string{"paid", "touch", "replace", "set", "drop", "delete"}[d]
}
