// A strategy of 11 MB: when it starts it reads a file and a page of another host, and there is neither here.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"

	"github.com/warmpath/warmpath/sdk"
)

type large struct{ said string }

func (s *large) Configure(*sdk.Options) error {
	_, file := os.ReadFile("/etc/hostname")
	_, page := http.Get("http://127.0.0.1:1/")
	said, err := json.Marshal([]string{fmt.Sprint(file), fmt.Sprint(page)})
	s.said = regexp.MustCompile("[^a-z0-9:/. ]").ReplaceAllString(string(said), "")
	return err
}

func (s *large) Route(r *sdk.Request, _ []sdk.Worker) sdk.Decision { return r.Reject(503, s.said, 1) }

func init() { sdk.Register(new(large)) }

func main() {}
