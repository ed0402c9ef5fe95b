package cli

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/cli/scaffold"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/toolchains"
)

// theWay goes from an empty folder to a strategy that decides a request of a daemon that runs, and prints the seconds of
// each step.
const theWay = `
warmpath sim --listen 127.0.0.1:9001 --count 2 &
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' > admin.token
mkdir strategies
cat > warmpath.toml <<'END'
[server]
listen = "127.0.0.1:8080"
admin = "127.0.0.1:9090"
admin_token_file = "admin.token"
strategies_dir = "strategies"

[[pools]]
strategy = "roundrobin"

[[pools.workers]]
url = "http://127.0.0.1:9001"

[[pools.workers]]
url = "http://127.0.0.1:9002"
END
warmpath serve 2> serve.log &
until curl -sf http://127.0.0.1:9090/ready > /dev/null; do sleep 0.1; done

total=0
step() {
  local name=$1 begin=$(date +%s%N) took
  shift
  "$@"
  took=$((($(date +%s%N) - begin) / 1000000))
  total=$((total + took))
  printf 'seconds of %s: %d.%02d\n' "$name" $((took / 1000)) $((took % 1000 / 10))
}
decides() { # the first request that the strategy decides
  curl -sf -o /dev/null http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' \
    -d '{"model": "sim", "prompt": "Once upon a time there was a router", "max_tokens": 4}'
  warmpath why last --admin 127.0.0.1:9090 --token-file admin.token > why.txt
  grep 'mine: ' why.txt
}

step new warmpath plugin new mine --lang LANGUAGE --skeleton SKELETON
if [ -e mine/package.json ]; then step 'npm install' npm install --silent --no-audit --no-fund --prefix mine; fi
step test warmpath plugin test mine
step build warmpath plugin build mine
step check warmpath plugin check mine/mine.wasm
step push warmpath plugin push mine/mine.wasm --activate pool1 --admin 127.0.0.1:9090 --token-file admin.token
step request decides
printf 'seconds from an empty folder to a live strategy (LANGUAGE, SKELETON): %d.%02d\n' $((total / 1000)) $((total % 1000 / 10))
`

// In each language the first skeleton and the second pass their test and the check, and decide requests of a daemon. With -v
// the test prints how long that takes.
func TestFromAnEmptyFolderToALiveStrategy(t *testing.T) {
	if testing.Short() {
		t.Skip("runs servers and compilers")
	}
	toolchains.Use(t, "../..")
	for _, language := range scaffold.Languages {
		for _, skeleton := range scaffold.Skeletons {
			t.Run(language+" "+skeleton, func(t *testing.T) {
				dir, port := workplace(t), porttest.Row(t, 4)
				launch(t, dir, "bin/warmpath plugin new probe --lang "+language).succeed()
				toolchains.Need(t, language, filepath.Join(dir, "probe"))
				at := func(i int) string { return fmt.Sprint(port + i) }
				words := strings.NewReplacer("8080", at(0), "9090", at(1), "9001", at(2), "9002", at(3), "LANGUAGE", language,
					"SKELETON", skeleton)
				write(t, filepath.Join(dir, "way.sh"), tutorialBegins+words.Replace(theWay))
				out := launch(t, dir, "bash way.sh", "GOPROXY=off", "GOWORK=off").succeed()
				if !strings.Contains(out, "mine.wasm: ok") || !regexp.MustCompile(`mine: (least cost|learnt|explored)`).MatchString(out) {
					t.Errorf("the strategy does not decide:\n%s", out)
				}
				t.Log(strings.Join(regexp.MustCompile(`(?m)^seconds .*$`).FindAllString(out, -1), ", "))
			})
		}
	}
}
