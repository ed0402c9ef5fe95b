package operator

import (
	"fmt"
	"testing"
)

func TestLabelsAreBounded(t *testing.T) {
	var n names
	for i := range 2 * maxNames {
		n.label(fmt.Sprint(i))
	}
	if got := n.label("new"); got != "other" || n.label("7") != "7" {
		t.Fatalf("the label of a new name is %q", got)
	}
}
