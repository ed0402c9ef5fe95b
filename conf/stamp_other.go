//go:build !linux

package conf

import (
	"os"
	"time"
)

// stamp is of no use here: the time of a file's last change has another name on each system.
type stamp struct{ changed time.Time }

// stampOf returns no stamp.
func stampOf(os.FileInfo) (s stamp, ok bool) { return s, false }
