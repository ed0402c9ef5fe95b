//go:build !linux

package hugepages

import "context"

// Run returns at once: only Linux is asked for huge pages.
func Run(context.Context) {}
