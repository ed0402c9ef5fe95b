//go:build !race

package waittest

import "time"

const patience = 20 * time.Second
