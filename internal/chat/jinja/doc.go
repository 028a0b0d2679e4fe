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
// How a rendering works:
//
//	parse.Template    source → tree                                   package parse
//	interp.go         statements: text, if, for, set, blocks          exec
//	eval.go           expressions → values                            eval
//	scope.go          variables; loop.go: for; macro.go: calls
//	attr.go           x.name, x[key], x[a:b]: Python's objects        methods*.go
//	ops.go compare.go arithmetic, equality, order                     number.go
//	text.go repr.go   values → text                                   format*.go
//	filters*.go tests.go globals.go                                   what templates call by name
//	limits.go         the budget every loop and allocation draws on
package jinja
