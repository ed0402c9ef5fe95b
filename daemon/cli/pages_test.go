package cli

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
)

// withWorker adds to a page's TOML what the page leaves out: a pool, or a worker.
func withWorker(text string) string {
	const worker = "\n[[pools.workers]]\nurl = \"http://127.0.0.1:9001\"\n"
	switch {
	case strings.Contains(text, "[[pools]]"):
		return text
	case strings.Contains(text, "[pools."):
		return "[[pools]]\n" + text
	}
	return text + "\n[[pools]]" + worker
}

// The daemon accepts every TOML block of the pages as a file. Those of the tutorial and of the lab are checked where
// their commands run.
func TestTOMLOfThePages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	secret := regexp.MustCompile(`(?m)^(?:[a-z_]+_)?file += "([^"]+)"`)
	blocks := 0
	for _, page := range pages {
		if name := filepath.Base(page); name == "strategies.md" || name == "lab.md" {
			continue
		}
		for _, m := range fence.FindAllStringSubmatch(read(t, page), -1) {
			if m[1] != "toml" {
				continue
			}
			blocks++
			dir := t.TempDir()
			for i, f := range secret.FindAllStringSubmatch(m[2], -1) {
				write(t, filepath.Join(dir, f[1]), fmt.Sprintf("%048d\n", i))
			}
			if _, err := conf.Parse([]byte(withWorker(m[2])), filepath.Join(dir, "warmpath.toml")); err != nil {
				t.Errorf("%s shows TOML that is refused: %v\n%s", page, err, m[2])
			}
		}
	}
	if blocks < 8 {
		t.Errorf("the pages have %d blocks of TOML", blocks)
	}
}

// operatorsPages run from top to bottom, each as one script: commands, TOML as warmpath.toml, nginx as its file.
var operatorsPages = []string{"sizing", "security", "behind", "migrating", "kubernetes", "release", "install", "first-hour",
	"disaggregation", "adapters"}

// shown lists by page what a reader sees who runs its commands.
var shown = map[string][]string{
	"first-hour":     {`"object":"chat.completion"`, "2 of 2 up", "decision  gpu-", "gets no new requests", "reloaded"},
	"disaggregation": {"decision  decode-1", "prefill   at prefill-1: done"},
	"adapters":       {`"model":"billing-eu"`, `"parent":"sim"`},
}

func TestOperatorsPages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs servers")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	port, dir := porttest.Row(t, 10), workplace(t)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", port+i) }
	door := at(5)
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Log("there is no nginx: its blocks are not looked at, and what asks it asks the daemon")
		door = at(0)
	}
	ports := strings.NewReplacer("127.0.0.1:8080", at(0), "127.0.0.1:9090", at(1), "127.0.0.1:9001", at(2),
		"127.0.0.1:9002", at(3), "127.0.0.1:9003", at(4), "127.0.0.1:80/", door+"/", "listen 80;", "listen "+door+";",
		"127.0.0.1:8090", at(6), "127.0.0.1:9190", at(7), "127.0.0.1:9101", at(8), "127.0.0.1:9102", at(9))
	launch(t, dir, "bin/warmpath sim --count 3 --listen "+at(2)).says("http://127.0.0.1:", 3)
	write(t, filepath.Join(dir, "served.toml"), ports.Replace("[server]\nlisten = \"127.0.0.1:8080\"\nadmin = \"127.0.0.1:9090\"\n"+
		"[[pools]]\n[[pools.workers]]\nurl = \"http://127.0.0.1:9001\"\n"))
	serve := launch(t, dir, "bin/warmpath serve --config served.toml")
	serve.eventually("the daemon", func() bool {
		status, _, _ := fetch("GET", "http://"+at(0)+"/ready", "")
		return status == http.StatusOK
	})
	for _, name := range operatorsPages {
		t.Run(name, func(t *testing.T) {
			dir := workplace(t)
			var b strings.Builder
			fmt.Fprintf(&b, prelude, root)
			for i, m := range fence.FindAllStringSubmatch(read(t, filepath.Join(root, "docs", name+".md")), -1) {
				addBlock(t, &b, i, m[1], m[2])
			}
			write(t, filepath.Join(dir, "page.sh"), ports.Replace(b.String()))
			out := launch(t, dir, "bash page.sh", "DOOR="+door).succeed()
			if name == "behind" && !strings.Contains(out, "data: [DONE]") {
				t.Errorf("there is no whole stream in\n%s", out)
			}
			for _, want := range shown[name] {
				if !strings.Contains(out, want) {
					t.Errorf("the page does not show %q:\n%s", want, out)
				}
			}
			if name == "migrating" && strings.Contains(out, "WRONG") {
				t.Errorf("check --probe finds fault:\n%s", out)
			}
		})
	}
}

// prelude precedes the commands of a page. Programs that need a cluster, or minutes of a compiler, are only looked up.
const prelude = `set -euo pipefail; PATH="$PWD/bin:$PATH"; trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
root=%q
make() { command make -n -C "$root" "$@" >/dev/null; }
git() { test "$1 $2 $4" = "tag -a -m" -a "$3" = "$5"; }
helm() { test -f "$root/$4/Chart.yaml"; }
kubectl() {
	case "$1" in
	create) [[ "$5" =~ ^--from-literal=token=[0-9a-f]{64}$ ]] ;;
	apply) test -f "$root/$3/kustomization.yaml" ;;
	*) echo "kubectl $1 is not looked at by the test"; return 1 ;;
	esac
}
`

// addBlock adds one block of a page to its script.
func addBlock(t *testing.T, b *strings.Builder, i int, language, text string) {
	t.Helper()
	switch language {
	case "sh":
		b.WriteString(text)
	case "toml":
		if strings.Contains(text, "[pools.kubernetes]") {
			return // outside of a cluster; TestTOMLOfThePages reads it
		}
		fmt.Fprintf(b, "cat > warmpath.toml <<'END'\n%s\nEND\nwarmpath check --config warmpath.toml\n", withWorker(text))
	case "ini": // a unit's; TestSystemdFiles reads it
	case "nginx":
		if _, err := exec.LookPath("nginx"); err != nil {
			return
		}
		fmt.Fprintf(b, "cat > nginx%d.conf <<'END'\n%s%s}\nEND\nnginx -t -p \"$PWD\" -e stderr -c nginx%d.conf\n", i, nginxHead, text, i)
		if strings.Contains(text, "proxy_pass http://warmpath;") {
			fmt.Fprintf(b, "nginx -p \"$PWD\" -e stderr -c nginx%d.conf &\n", i)
			b.WriteString("for n in $(seq 300); do curl -sf \"http://$DOOR/ready\" >/dev/null && break; sleep .1; done\n")
		}
	default:
		t.Errorf("a block that the test does not know: ```%s\n%s", language, text)
	}
}

const nginxHead = `daemon off; master_process off; pid nginx.pid; error_log stderr;
events {}
http {
access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
`
