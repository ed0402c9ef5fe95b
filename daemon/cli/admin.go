package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/operator"
)

// adminFlags is the admin listener of a running daemon, from the flags.
type adminFlags struct {
	at, tokenFile string
	patience      time.Duration // beyond adminTimeout
}

// flags adds --admin and --token-file.
func (a *adminFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&a.at, "admin", "127.0.0.1:9090", "the daemon's server.admin: HOST:PORT, or a URL")
	f.StringVar(&a.tokenFile, "token-file", "", "holds the admin listener's token, if it asks for one")
}

// pageFlags are those of a command that prints a page of the admin listener.
type pageFlags struct {
	adminFlags
	asJSON bool
}

// flags adds those of adminFlags, and --json.
func (p *pageFlags) flags(c *cobra.Command) {
	p.adminFlags.flags(c)
	c.Flags().BoolVar(&p.asJSON, "json", false, "print the daemon's JSON")
}

// print reads a page into v and prints it: as it came for --json, else by write.
func (p *pageFlags) print(c *cobra.Command, path string, v any, write func(io.Writer) error) error {
	raw, err := p.get(c.Context(), path, v)
	if err != nil {
		return err
	}
	return p.printRaw(c.OutOrStdout(), raw, write)
}

// printRaw is print for a page that was read into its value.
func (p *pageFlags) printRaw(out io.Writer, raw []byte, write func(io.Writer) error) error {
	if p.asJSON {
		_, err := fmt.Fprintln(out, strings.TrimSpace(string(raw)))
		return err
	}
	return write(out)
}

// adminTimeout bounds a call to the admin listener.
const adminTimeout = 10 * time.Second

// errNotThere is the error for status 404, wrapped with the daemon's reason.
var errNotThere = errors.New("not there")

// maxAnswer bounds the bytes read of an answer.
const maxAnswer = 64 << 20

// call sends a request and returns the answer's body. Any status but 200 is an error.
func (a *adminFlags) call(ctx context.Context, method, path string, body []byte, headers ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, adminTimeout+a.patience)
	defer cancel()
	resp, err := a.open(ctx, method, path, body, headers...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return raw, nil
	case http.StatusBadRequest:
		if bytes.Contains(raw, []byte("HTTPS")) {
			return nil, fmt.Errorf("what answers at %s is a port for clients, with TLS: give the daemon's server.admin as "+
				"--admin, and not server.listen", a.at)
		}
	case http.StatusNotFound:
		if reason := reasonIn(raw); reason != "" {
			return nil, fmt.Errorf("%w: %s", errNotThere, reason)
		}
		return nil, fmt.Errorf("what answers at %s is no warmpath admin listener: it has no %s; "+
			"give the daemon's server.admin as --admin", a.at, path)
	case http.StatusUnauthorized:
		if a.tokenFile != "" {
			return nil, fmt.Errorf("the admin listener at %s refuses the token of %s: it wants what "+
				"server.admin_token_file of the daemon holds", a.at, a.tokenFile)
		}
		return nil, fmt.Errorf("the admin listener at %s wants its token: --token-file FILE", a.at)
	}
	return nil, fmt.Errorf("the admin listener at %s answers %s: %s", a.at, resp.Status, said(raw))
}

// said returns the error in an answer's JSON, or else the beginning of the answer.
func said(raw []byte) string {
	if reason := reasonIn(raw); reason != "" {
		return reason
	}
	return fmt.Sprintf("%.200s", bytes.TrimSpace(raw))
}

// reasonIn returns the error that an admin listener wrote into an answer, "" if it wrote none.
func reasonIn(raw []byte) string {
	var e struct{ Error string }
	if json.Unmarshal(raw, &e) != nil {
		return ""
	}
	return e.Error
}

// open sends a request. headers alternates names and values.
func (a *adminFlags) open(ctx context.Context, method, path string, body []byte, headers ...string) (*http.Response,
	error) {
	base := strings.TrimSuffix(a.at, "/")
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("--admin %q is no address; write server.admin's HOST:PORT: %w", a.at, err)
	}
	if a.tokenFile != "" {
		token, err := os.ReadFile(a.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("--token-file cannot be read: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil && strings.HasPrefix(base, "https://") {
		return nil, fmt.Errorf("the admin listener speaks no TLS: give server.admin's HOST:PORT as --admin, and not "+
			"server.listen's: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("the daemon's admin listener does not answer; is --admin its server.admin? %w", err)
	}
	return resp, nil
}

// get reads JSON into v, and returns the bytes as they came.
func (a *adminFlags) get(ctx context.Context, path string, v any) ([]byte, error) {
	raw, err := a.call(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("what answers at %s is no warmpath admin listener: %w", a.at, err)
	}
	return raw, nil
}

// reload makes the daemon read its file again.
func (a *adminFlags) reload(ctx context.Context) (r metrics.Reload, err error) {
	raw, err := a.call(ctx, http.MethodPost, "/api/v1/reload", nil)
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return r, err
}

// lastChange describes the daemon's last change: the daemon watches its file, and often reloads before the command. ""
// = no change.
func (a *adminFlags) lastChange(ctx context.Context) string {
	var o operator.Overview
	if _, err := a.get(ctx, "/api/v1/overview", &o); err != nil || o.Change == nil {
		return ""
	}
	return fmt.Sprintf("; the last change was taken %s ago: %s", ago(o.Change.At, o.Now),
		strings.Join(o.Change.Changed, ", "))
}

// warningOf returns the warning of an answer, "" if it has none.
func warningOf(raw []byte) string {
	var w struct{ Warning string }
	_ = json.Unmarshal(raw, &w)
	return w.Warning
}
