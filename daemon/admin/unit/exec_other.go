//go:build !unix

package unit

import (
	"errors"
	"net"
	"os"
)

// closeOnExec does nothing: this system passes on no descriptors.
func closeOnExec(...*os.File) {}

// second fails: this system passes on no descriptors.
func second(net.Listener) (*os.File, error) {
	return nil, errors.New("unit: this system hands no sockets over")
}
