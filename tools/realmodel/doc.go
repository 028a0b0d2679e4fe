// Package realmodel holds the suite that compares the foretoken binary with
// llama.cpp on published checkpoints. Its tests carry the build tag realmodel;
// `make realmodel` builds what they need and runs them.
package realmodel
