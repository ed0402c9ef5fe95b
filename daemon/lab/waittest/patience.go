//go:build !race

package waittest

import "time"

const patience = time.Minute
