//go:build !unix

package unit

import (
	"errors"
	"net"
	"os"
)

// closeOnExec does nothing: there are no descriptors here.
func closeOnExec(...*os.File) {}

// second fails: there are no descriptors here.
func second(net.Listener) (*os.File, error) {
	return nil, errors.New("unit: this system hands no sockets over")
}
