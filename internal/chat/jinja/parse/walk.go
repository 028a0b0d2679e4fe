package parse

// Walk calls visit for every statement and expression of the body, each before its parts.
func Walk(body []Stmt, visit func(Node)) {
	for _, n := range body {
		walk(n, visit)
	}
}

func walk(n Node, visit func(Node)) {
	visit(n)
	exprs := func(xs ...Expr) {
		for _, x := range xs {
			if x != nil {
				walk(x, visit)
			}
		}
	}
	args := func(a Args) {
		exprs(a.Pos...)
		exprs(a.Named...)
		exprs(a.Star, a.DblStar)
	}
	switch n := n.(type) {
	case *Const, *Name, *NSRef, *Text, *LoopControl:
	case *Tuple:
		exprs(n.Items...)
	case *List:
		exprs(n.Items...)
	case *Dict:
		exprs(n.Keys...)
		exprs(n.Values...)
	case *Attr:
		exprs(n.X)
	case *Index:
		exprs(n.X, n.Index)
	case *Slice:
		exprs(n.X, n.Lo, n.Hi, n.Step)
	case *Call:
		exprs(n.Fn)
		args(n.Args)
	case *Filter:
		exprs(n.X)
		args(n.Args)
	case *Test:
		exprs(n.X)
		args(n.Args)
	case *Not:
		exprs(n.X)
	case *Unary:
		exprs(n.X)
	case *Binary:
		exprs(n.X, n.Y)
	case *Logic:
		exprs(n.X, n.Y)
	case *Compare:
		exprs(n.X)
		exprs(n.Rest...)
	case *Concat:
		exprs(n.Parts...)
	case *Cond:
		exprs(n.Test, n.Then, n.Else)
	case *Print:
		exprs(n.X)
	case *If:
		exprs(n.Tests...)
		for _, body := range n.Bodies {
			Walk(body, visit)
		}
	case *For:
		exprs(n.Target, n.Iter, n.Filter)
		Walk(n.Body, visit)
		Walk(n.Else, visit)
	case *Set:
		exprs(n.Target, n.X)
	case *SetBlock:
		exprs(n.Target)
		if n.Filter != nil {
			exprs(n.Filter)
		}
		Walk(n.Body, visit)
	case *Macro:
		exprs(n.Defaults...)
		Walk(n.Body, visit)
	case *CallBlock:
		exprs(n.Call)
		walk(n.Body, visit)
	case *FilterBlock:
		exprs(n.Filter)
		Walk(n.Body, visit)
	case *With:
		exprs(n.Targets...)
		exprs(n.Values...)
		Walk(n.Body, visit)
	case *Scope:
		Walk(n.Body, visit)
	}
}
