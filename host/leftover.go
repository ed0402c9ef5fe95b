package host

import (
	"bytes"
	"encoding/binary"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Leftover is what a pick has left in a module's frame. The host reads no more of it than it needs; a tool that judges
// the module reads all.
type Leftover struct {
	RowsChanged  bool     // the rows are not those that the host wrote
	Alternatives uint32   // how many the module says that it wrote
	Order        []uint32 // these, at most as many as there are rows
	Status       uint32   // of a rejection, as the module wrote it; 0 = it set none, or has no room for it
	TextOutside  bool     // the text of a rejection leaves the module's memory
	Pair         int32    // row that the module has named for the prompt; -1 = none, or it does not want pairs
}

// leftoverOf reads what the last pick of in, of f, has left.
func leftoverOf(in *instance, f *Frame) (l Leftover, ok bool) {
	layout := &in.program.layout
	area, ok := in.mem.Read(in.base, uint32(layout.FrameSize(in.room)))
	n := len(f.Rows)
	if !ok || n > in.room {
		return l, false
	}
	wrote := make([]byte, layout.FrameSize(n))
	f.push(wrote, layout)
	rows := layout.HeaderBytes + n*layout.RowBytes
	l.RowsChanged = !bytes.Equal(area[layout.HeaderBytes:rows], wrote[layout.HeaderBytes:rows])
	l.Alternatives = binary.LittleEndian.Uint32(area[offOrderLen:])
	order := area[layout.OrderAt(in.room):]
	for i := range min(int(l.Alternatives), n) {
		l.Order = append(l.Order, binary.LittleEndian.Uint32(order[i*abi.OrderSize:]))
	}
	if layout.HeaderBytes >= offRejectLen+4 {
		l.Status = binary.LittleEndian.Uint32(area[offRejectStatus:])
		text, size := binary.LittleEndian.Uint32(area[offRejectText:]), binary.LittleEndian.Uint32(area[offRejectLen:])
		l.TextOutside = uint64(text)+uint64(size) > uint64(in.mem.Size())
	}
	l.Pair = -1
	if in.program.wants&abi.WantPair != 0 {
		l.Pair = int32(binary.LittleEndian.Uint32(area[offPairRow:]))
	}
	return l, true
}
