package tier

// debt says what Redis has not got yet of an entry. The order matters: a touch leaves a larger debt as it is.
//
// Every entry of L1 has a debt. The healer pays it before the breaker closes, and at every pulse. Tombstones
// are the entries of a deletion; L1 keeps one only until Redis has it.
//
//	change here, Redis silent             from paid, touch   from replace  from set   from drop  from delete
//	  Touch                               touch              replace       set        -          -
//	  SetIfAbsent, Keep, Replace, Local   replace            replace       set        replace    set
//	  Set, CompareAndSwap, Add            set                set           set        set        set
//	  Drop                                drop               drop          delete     drop       delete
//	  Delete                              delete             delete        delete     delete     delete
//	change here, Redis answers            paid; a tombstone goes
//	what Redis answers to the debt
//	  it took it, or has the same         paid; a tombstone goes; touch if the life was changed meanwhile
//	  it has another value                its value, paid     it has a tombstone: the entry goes
//	  nothing, or "I have forgotten"      as it was
//	  but the value was changed meanwhile as it was, on the base that Redis is now known to have
//
// A debt of replace or drop gives way: it carries its base, what Redis had when it last answered (nothing, maybe), and
// if Redis has something else by then, that wins. Set and delete win over whatever Redis has. TestDebts,
// TestAnswersToChanges and yield_test.go walk this table.
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
