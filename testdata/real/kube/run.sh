#!/usr/bin/env bash
# Follows the EndpointSlices of a real API server, and has that server judge the manifests of deploy/kubernetes. It
# builds kube-apiserver from its Go module: some ten minutes on two cores and 3 GB of build cache, hence not in CI. It needs Go,
# etcd (Debian: etcd-server), kubectl (kubernetes-client) and openssl. All listens on 127.0.0.1, in a folder of its own.
#
#	testdata/real/kube/run.sh [FOLDER]     FOLDER keeps the binary for the next run
set -euo pipefail
cd "$(dirname "$0")/../../.."
top=$PWD
version=1.34.1
dir=${1:-$(mktemp -d)}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
api=https://127.0.0.1:26443
for tool in go etcd kubectl openssl curl; do
	command -v $tool >/dev/null || { echo "realkube: there is no $tool" >&2; exit 1; }
done

build() {
	cd "$dir"
	printf 'module realkube\ngo 1.26\nrequire k8s.io/kubernetes v%s\n' $version >go.mod
	# k8s.io/kubernetes names its own parts by v0.0.0, and replaces them by folders that a module has not.
	mod=$(go mod download -json k8s.io/kubernetes@v$version | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	grep -oE '^\s+k8s.io/[a-z-]+ v0\.0\.0( |$)' "$mod" | awk '{ print $1 }' | sort -u | while read -r part; do
		echo "replace $part => $part v0.${version#1.}"
	done >>go.mod
	printf 'package realkube\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n' >tools.go
	go get k8s.io/kubernetes/cmd/kube-apiserver@v$version
	CGO_ENABLED=0 nice go build -gcflags=all='-N -l' -ldflags='-s -w' -o kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	cd "$top"
}
[ -x "$dir/kube-apiserver" ] || build

# api stop|start, in a file of its own as the test calls it.
cat >"$dir/api.sh" <<SH
set -e
cd "$dir"
if [ "\$1" = stop ]; then kill "\$(cat api.pid)"; while kill -0 "\$(cat api.pid)" 2>/dev/null; do sleep .1; done; exit; fi
setsid ./kube-apiserver --etcd-servers=http://127.0.0.1:23790 --secure-port=26443 --bind-address=127.0.0.1 --cert-dir="$dir/certs" \\
	--service-account-issuer=https://kubernetes.default.svc --service-account-key-file=sa.key \\
	--service-account-signing-key-file=sa.key --service-cluster-ip-range=10.96.0.0/16 --authorization-mode=RBAC \\
	--token-auth-file=tokens.csv --disable-admission-plugins=ServiceAccount >api.log 2>&1 </dev/null &
echo \$! >api.pid
for i in \$(seq 300); do
	! curl -sfk -H 'Authorization: Bearer admin' $api/readyz >/dev/null || exit 0
	sleep .2
done
tail api.log; exit 1
SH
stop() {
	bash "$dir/api.sh" stop 2>/dev/null || true
	kill "$(cat "$dir/etcd.pid")" 2>/dev/null || true
}
trap stop EXIT
cd "$dir"
rm -rf data account
[ -e sa.key ] || openssl genrsa -out sa.key 2048
echo 'admin,admin,admin,"system:masters"' >tokens.csv
etcd --data-dir data --listen-client-urls http://127.0.0.1:23790 --advertise-client-urls http://127.0.0.1:23790 \
	--listen-peer-urls http://127.0.0.1:23800 --initial-advertise-peer-urls http://127.0.0.1:23800 \
	--initial-cluster default=http://127.0.0.1:23800 >etcd.log 2>&1 &
echo $! >etcd.pid
bash api.sh start
admin="--server=$api --insecure-skip-tls-verify --token=admin --namespace=prod"
kubectl $admin create namespace prod
cd "$top"
kubectl $admin apply --validate=strict --dry-run=server -k deploy/kubernetes
kubectl $admin apply --validate=strict -f deploy/kubernetes/rbac.yaml
mkdir -p "$dir/account"
cp "$dir/certs/apiserver.crt" "$dir/account/ca.crt"
printf prod >"$dir/account/namespace"
kubectl $admin create token warmpath --duration 1h >"$dir/account/token"
export WARMPATH_REALKUBE=$api WARMPATH_REALKUBE_ADMIN=$admin WARMPATH_REALKUBE_ACCOUNT=$dir/account WARMPATH_REALKUBE_RESTART=$dir/api.sh
go test -count=1 -v -run TestRealServer ./daemon/fleet/discover/endpoints
