//go:build race

package waittest

import "time"

const patience = 100 * time.Second // with its detector everything takes some five times as long
