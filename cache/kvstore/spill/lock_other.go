//go:build !unix

package spill

import "os"

// lockFolder does nothing: this system has no lock that ends with its process.
func lockFolder(*os.File) error { return nil }
