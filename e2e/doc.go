// Package e2e holds tests that drive `foretoken serve` with clients that others
// wrote: openai-go here, openai for JavaScript in node, openai for Python and
// lm-evaluation-harness in python. What an answer has to say comes from
// `foretoken run` and `foretoken score`, which know nothing of HTTP. `make e2e`
// installs the clients and runs all.
package e2e
