// Package jinja renders chat templates: the language of Jinja 3.1 in the setting in which Hugging Face's
// libraries render them, so that a prompt comes out byte for byte the same.
//
// That setting is a sandbox in which lists and dicts cannot be changed, with trim_blocks and lstrip_blocks,
// loop controls, generation blocks, no escaping, undefined variables that print as nothing, a tojson filter
// that is Python's json.dumps, and two more globals: raise_exception and strftime_now.
//
// A template comes with a checkpoint or a request, so it is not trusted: a rendering ends when its context
// does, and Limits bound its work, its memory and its output. Source that nests too deep is refused by
// package parse, calls that nest too deep by the interpreter, because a Go program does not survive the
// overflow of its stack.
//
// Where to find what:
//
//	parse/            source → tree
//	interp.go         statements: text, if, set, blocks; loop.go: for; macro.go: macros and calls
//	eval.go           expressions → values
//	scope.go          variables
//	types.go          what templates work with besides JSON values: undefined, range, namespace, …
//	attr.go           x.name, x[key], x[a:b]; methods*.go: the methods of Python's types
//	ops.go compare.go number.go   arithmetic, equality, order
//	text.go format*.go            values → text, %-formats and {}-formats
//	filters*.go tests.go globals.go strftime.go   what templates call by name
//	limits.go         the budget that every loop and allocation draws on
package jinja
