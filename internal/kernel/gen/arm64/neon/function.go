// Package neon writes arm64 assembly for Go: what avo is for amd64, as small as
// the kernels allow.
//
// Operands are in Arm's order, the destination first. Instructions that the Go
// assembler knows are written in its language (whose order is the other way
// round), the others as words of machine code with Arm's notation beside them.
// Each has its function here, which says how it is encoded.
package neon

import (
	"fmt"
	"slices"
	"strings"
)

// R is a general register, V a vector register.
type (
	R int
	V int
)

func (r R) String() string { return fmt.Sprintf("R%d", int(r)) }
func (v V) String() string { return fmt.Sprintf("V%d", int(v)) }

// f is v as the assembler calls it in loads and stores.
func (v V) f() string { return fmt.Sprintf("F%d", int(v)) }

var text, stubs strings.Builder

// function is the one that is being written.
var function struct {
	params    map[string]int // their offsets
	labels    int
	usedR     map[R]bool
	usedV     map[V]bool
	recycling [][]any // what each open scope has allocated
}

// Function begins a function with the given signature, as in
// "func(y []float32, n int)", whose registers are all free.
func Function(name, signature, doc string) {
	f := &function
	f.params, f.labels = map[string]int{}, 0
	f.usedR, f.usedV, f.recycling = map[R]bool{}, map[V]bool{}, nil
	size := 0
	place := func(name string, bytes int) {
		size = (size + bytes - 1) / bytes * bytes
		f.params[name] = size
		size += bytes
	}
	list, result, _ := strings.Cut(strings.TrimPrefix(signature, "func("), ")")
	var params [][2]string // names with their types, last first
	typ := ""
	for _, p := range slices.Backward(strings.Split(list, ", ")) {
		name, t, ok := strings.Cut(p, " ")
		if ok {
			typ = t
		}
		params = append(params, [2]string{name, typ})
	}
	for _, p := range slices.Backward(params) {
		name, typ := p[0], p[1]
		switch {
		case strings.HasPrefix(typ, "[]"):
			place(name+"_base", 8)
			place(name+"_len", 8)
			place(name+"_cap", 8)
		case typ == "float32" || typ == "uint32":
			place(name, 4)
		case typ == "int" || typ == "uint64" || strings.HasPrefix(typ, "*"):
			place(name, 8)
		default:
			panic("no parameters of type " + typ)
		}
	}
	if result = strings.Trim(result, " ()"); result != "" {
		name, typ, ok := strings.Cut(result, " ")
		if !ok {
			name, typ = "ret", result
		}
		bytes, ok := map[string]int{"float32": 4, "uint32": 4, "float64": 8, "[16]uint64": 128}[typ]
		if !ok {
			panic("no results of type " + typ)
		}
		size = (size + 7) / 8 * 8
		f.params[name] = size
		size += bytes
	}
	fmt.Fprintf(&text, "\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, strings.TrimPrefix(signature, "func"), name, size)
	fmt.Fprintf(&stubs, "\n// %s %s\n//\n//go:noescape\nfunc %s%s\n", name, doc, name, strings.TrimPrefix(signature, "func"))
}

// Asm writes one instruction in the assembler's language.
func Asm(format string, args ...any) {
	text.WriteByte('\t')
	fmt.Fprintf(&text, format, args...)
	text.WriteByte('\n')
}

// word writes an instruction that the assembler does not know.
func word(code uint32, format string, args ...any) {
	Asm("WORD $0x%08x // %s", code, strings.ToLower(fmt.Sprintf(format, args...)))
}

// Offset is where a parameter lies.
func Offset(param string) int {
	at, ok := function.params[param]
	if !ok {
		panic("no parameter " + param)
	}
	return at
}

// Param loads a parameter: a number, a pointer, or x_base or x_len of a slice.
func Param(name string) R {
	r := NewR()
	Asm("MOVD %s+%d(FP), %v", name, Offset(name), r)
	return r
}

// FloatParam broadcasts a parameter of type float32 or uint32.
func FloatParam(name string) V {
	v := NewV()
	Asm("FMOVS %s+%d(FP), %s", name, Offset(name), v.f())
	DUP(v, v, 0)
	return v
}

// NewR allocates a general register. R18 is the system's, R26 to R30 are Go's.
func NewR() R {
	for r := range R(26) {
		if r != 18 && !function.usedR[r] {
			function.usedR[r] = true
			allocated(r)
			return r
		}
	}
	panic("no general register left")
}

// NewV allocates a vector register.
func NewV() V {
	for v := range V(32) {
		if !function.usedV[v] {
			function.usedV[v] = true
			allocated(v)
			return v
		}
	}
	panic("no vector register left")
}

// NewVs allocates n vector registers.
func NewVs(n int) []V {
	v := make([]V, n)
	for i := range v {
		v[i] = NewV()
	}
	return v
}

func allocated(register any) {
	if n := len(function.recycling); n > 0 {
		function.recycling[n-1] = append(function.recycling[n-1], register)
	}
}

// Scope frees the registers that body allocates when it ends.
func Scope(body func()) {
	f := &function
	f.recycling = append(f.recycling, nil)
	body()
	n := len(f.recycling) - 1
	for _, r := range f.recycling[n] {
		switch r := r.(type) {
		case R:
			delete(f.usedR, r)
		case V:
			delete(f.usedV, r)
		}
	}
	f.recycling = f.recycling[:n]
}

// NewLabel returns a label of its own.
func NewLabel(name string) string {
	function.labels++
	return fmt.Sprintf("%s%d", name, function.labels)
}

// Label marks a place.
func Label(name string) {
	fmt.Fprintf(&text, "\n%s:\n", name)
}

// Repeat runs body n times, n > 0, and counts n down.
func Repeat(name string, n R, body func()) {
	top := NewLabel(name)
	Label(top)
	Scope(body)
	Asm("SUBS $1, %v, %v", n, n)
	Asm("BNE %s", top)
}

// Times runs body a constant number of times.
func Times(name string, n int, body func()) {
	Scope(func() {
		counter := NewR()
		Asm("MOVD $%d, %v", n, counter)
		Repeat(name, counter, body)
	})
}

// Add adds a constant to r.
func Add(r R, n int) {
	switch {
	case n > 0:
		Asm("ADD $%d, %v", n, r)
	case n < 0:
		Asm("SUB $%d, %v", -n, r)
	}
}

// Return ends the function.
func Return() { Asm("RET") }

// ReturnFloat32 and ReturnFloat64 end a function whose result is the first lane
// of v, 32 bits of any type in the one case.
func ReturnFloat32(v V) { returnFloat("FMOVS", v) }
func ReturnFloat64(v V) { returnFloat("FMOVD", v) }

func returnFloat(move string, v V) {
	Asm("%s %s, ret+%d(FP)", move, v.f(), Offset("ret"))
	Return()
}

// Result returns the address of a result that is an array, of which it is also
// the first element.
func Result(name string) R {
	r := NewR()
	Asm("MOVD $%s_0+%d(FP), %v", name, Offset(name), r)
	return r
}
