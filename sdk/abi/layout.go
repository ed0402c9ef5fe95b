package abi

// Version is major<<16 + minor of this package. A host refuses another major version. What a minor version may change
// stands in the package's documentation.
const Version = 1<<16 | 3

// OrderSize is the bytes of an entry of the order area.
const OrderSize = 4

// Layout is the frame of one minor version. A module's marker names the one it was made for, and the host writes that
// one: a module never sees sizes other than those it was compiled with.
type Layout struct {
	Marker      string // the export that names it: a function () -> () that is never called
	Version     uint32 // what stands in Header.Version
	HeaderBytes int    // leading bytes of a Header that the module gets
	RowBytes    int    // leading bytes of a Row that it gets, and the distance of its rows
}

// Layouts lists the layouts that a host writes, the newest first. Of a module that exports several markers it takes the
// newest.
var Layouts = []Layout{
	{Marker: Marker, Version: Version, HeaderBytes: HeaderSize, RowBytes: RowSize},
	{Marker: "warmpath_abi_1_2", Version: 1<<16 | 2, HeaderBytes: 264, RowBytes: RowSize},
	{Marker: "warmpath_abi_1_1", Version: 1<<16 | 1, HeaderBytes: 192, RowBytes: 160},
	{Marker: "warmpath_abi_1_0", Version: 1 << 16, HeaderBytes: 128, RowBytes: 128},
}

// OrderAt is the offset of the order area in a frame of n rows.
func (l *Layout) OrderAt(n int) int { return l.HeaderBytes + n*l.RowBytes }

// FrameSize is the size in bytes of a frame of n rows.
func (l *Layout) FrameSize(n int) int { return l.OrderAt(n) + n*OrderSize }

// FrameSize is the size in bytes of a frame of n rows in this version.
func FrameSize(n int) int { return HeaderSize + n*(RowSize+OrderSize) }
