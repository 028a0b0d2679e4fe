#!/usr/bin/env bash
# Builds build/oracle. llama.cpp's CPU libraries and the headers they were built
# from both come from npm, versions and hashes fixed in package-lock.json;
# nothing of llama.cpp is compiled. Needs npm, git and gcc on linux/amd64.
set -euo pipefail
cd "$(dirname "$0")"

npm ci --omit=optional --ignore-scripts --no-audit --no-fund
libraries=$PWD/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64
mkdir -p build
rm -rf build/llama.cpp
git -c advice.detachedHead=false clone --quiet --no-checkout \
	node_modules/node-llama-cpp/llama/gitRelease.bundle build/llama.cpp
git -C build/llama.cpp checkout --quiet HEAD -- include ggml/include

gcc -std=gnu11 -O2 -Wall -Wextra -Werror \
	-DORACLE_LIBRARIES="\"$libraries\"" \
	-I build/llama.cpp/include -I build/llama.cpp/ggml/include \
	oracle.c -o build/oracle \
	-L "$libraries" -l:libllama.v0.4.0.so -l:libggml.v0.4.0.so -l:libggml-base.so -lm \
	-Wl,-rpath,"$libraries"
