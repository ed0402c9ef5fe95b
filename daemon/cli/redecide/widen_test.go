package redecide

import (
	"encoding/base64"
	"encoding/binary"
	"testing"

	"github.com/warmpath/warmpath/daemon/transport/packed"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// A frame that an older version has logged, packed or not, is read as its layout says.
func TestFramesOfOlderVersions(t *testing.T) {
	for _, l := range abi.Layouts {
		f := host.Frame{Rows: make([]abi.Row, 3)}
		f.Header.Version, f.Header.Session = l.Version, 7
		for i := range f.Rows {
			f.Rows[i].Key, f.Rows[i].Worker, f.Rows[i].Pending = uint64(i)+1, uint32(i), 2
		}
		whole := f.AppendTo(nil)
		old := append([]byte(nil), whole[:l.HeaderBytes]...)
		for i := range f.Rows {
			old = append(old, whole[abi.HeaderSize+i*abi.RowSize:][:l.RowBytes]...)
		}
		for what, r := range map[string]record{
			"plain":  {Frame: base64.StdEncoding.EncodeToString(old)},
			"packed": {Packed: base64.StdEncoding.EncodeToString(packed.AppendTable(nil, old, l.HeaderBytes, l.RowBytes))},
		} {
			got, err := r.bytes()
			if err != nil || len(got) != len(whole) || binary.LittleEndian.Uint64(got[72:]) != 7 {
				t.Fatalf("%s, %s: %d bytes, %v; want %d", l.Marker, what, len(got), err, len(whole))
			}
			for i := range f.Rows {
				row := got[abi.HeaderSize+i*abi.RowSize:]
				if key := binary.LittleEndian.Uint64(row[112:]); key != uint64(i)+1 {
					t.Errorf("%s, %s: row %d has key %x", l.Marker, what, i, key)
				}
			}
		}
	}
}
