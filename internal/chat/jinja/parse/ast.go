// Package parse turns the source of a Jinja template into a tree, as Jinja 3.1 does with trim_blocks,
// lstrip_blocks, loop controls and Hugging Face's generation blocks.
package parse

import "github.com/foretoken/foretoken/internal/chat/value"

const (
	// MaxSource is the longest source in bytes. Real templates have at most some 50 kB.
	MaxSource = 1 << 20
	// MaxHeight is how high an expression's tree may be, MaxNesting how deep statements nest. Jinja gives
	// up at about the same: Python's parser refuses 200 open parentheses and 100 indentations.
	MaxHeight  = 200
	MaxNesting = 100
)

// Node is a part of a template: an Expr or a Stmt.
type Node interface{ Line() int }

// Expr is an expression. A tree of expressions is at most MaxHeight high: walks may recurse.
type Expr interface {
	Node
	h() int
}

// Stmt is a statement. Statements nest at most MaxNesting deep.
type Stmt interface{ Node }

// at is what all nodes have.
type at struct {
	line   int32
	height int32
}

// Line returns the line of the source, counted from 1.
func (a at) Line() int { return int(a.line) }
func (a at) h() int    { return int(a.height) }

// The expressions.

type (
	// Const is a literal.
	Const struct {
		at
		Value value.Value
	}
	// Name is a variable.
	Name struct {
		at
		Name string
	}
	// NSRef is the target ns.name of a set.
	NSRef struct {
		at
		Namespace, Name string
	}
	// Tuple is (a, b).
	Tuple struct {
		at
		Items []Expr
	}
	// List is [a, b].
	List struct {
		at
		Items []Expr
	}
	// Dict is {key: value}.
	Dict struct {
		at
		Keys, Values []Expr
	}
	// Attr is x.name.
	Attr struct {
		at
		X    Expr
		Name string
	}
	// Index is x[index].
	Index struct {
		at
		X, Index Expr
	}
	// Slice is x[lo:hi:step]; parts left out are nil.
	Slice struct {
		at
		X            Expr
		Lo, Hi, Step Expr
	}
	// Call is fn(args).
	Call struct {
		at
		Fn   Expr
		Args Args
	}
	// Filter is x|name(args). X is nil at the start of a filter or set block: the block's text.
	Filter struct {
		at
		X    Expr
		Name string
		Args Args
	}
	// Test is x is name(args).
	Test struct {
		at
		X    Expr
		Name string
		Args Args
	}
	// Not is not x.
	Not struct {
		at
		X Expr
	}
	// Unary is -x or +x.
	Unary struct {
		at
		Op string
		X  Expr
	}
	// Binary is x op y: + - * / // % **.
	Binary struct {
		at
		Op   string
		X, Y Expr
	}
	// Logic is x and y, x or y.
	Logic struct {
		at
		Or   bool
		X, Y Expr
	}
	// Compare is x op y op z: == != < <= > >= in and "not in".
	Compare struct {
		at
		X    Expr
		Ops  []string
		Rest []Expr
	}
	// Concat is a ~ b ~ c.
	Concat struct {
		at
		Parts []Expr
	}
	// Cond is then if test else other; Else may be nil.
	Cond struct {
		at
		Test, Then, Else Expr
	}
)

// Args are the arguments of a call.
type Args struct {
	Pos     []Expr
	Names   []string // of Named
	Named   []Expr
	Star    Expr // *star, or nil
	DblStar Expr // **dblStar, or nil
}

// The statements.

type (
	// Text is text outside of tags.
	Text struct {
		at
		Text string
	}
	// Print is {{ x }}.
	Print struct {
		at
		X Expr
	}
	// If has a test for each body; the else body is last and has none.
	If struct {
		at
		Tests  []Expr
		Bodies [][]Stmt
	}
	// For is a loop. Filter may be nil.
	For struct {
		at
		Target    Expr
		Iter      Expr
		Filter    Expr
		Recursive bool
		Body      []Stmt
		Else      []Stmt
	}
	// Set is {% set target = x %}.
	Set struct {
		at
		Target Expr
		X      Expr
	}
	// SetBlock is {% set target | filter %}body{% endset %}. Filter may be nil.
	SetBlock struct {
		at
		Target Expr
		Filter *Filter
		Body   []Stmt
	}
	// Macro is a macro, or the body of a call block, which has no name.
	Macro struct {
		at
		Name     string
		Params   []string
		Defaults []Expr // of the last parameters
		Body     []Stmt
		// Which of the special variables the body mentions.
		Caller, Varargs, Kwargs bool
	}
	// CallBlock is {% call(params) call %}body{% endcall %}.
	CallBlock struct {
		at
		Call *Call
		Body *Macro
	}
	// FilterBlock is {% filter f %}body{% endfilter %}.
	FilterBlock struct {
		at
		Filter *Filter
		Body   []Stmt
	}
	// With is {% with targets = values %}body{% endwith %}.
	With struct {
		at
		Targets []Expr
		Values  []Expr
		Body    []Stmt
	}
	// Scope is a generation block: its text is kept, its assignments are not.
	Scope struct {
		at
		Body []Stmt
	}
	// LoopControl is {% break %} or {% continue %}.
	LoopControl struct {
		at
		Break bool
	}
)
