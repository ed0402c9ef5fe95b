package worker

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestThePageSaysHowKeysAreMade: docs/abi.md has a worked value for programs that make keys in another language.
func TestThePageSaysHowKeysAreMade(t *testing.T) {
	page, err := os.ReadFile("../../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("that of `gpu-1` is `0x%016x`", KeyOf("gpu-1")); !strings.Contains(string(page), want) {
		t.Errorf("docs/abi.md does not say %q", want)
	}
}
