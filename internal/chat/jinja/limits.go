package jinja

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Limits bound one rendering. The zero value of a field means its default.
type Limits struct {
	// Time is how long a rendering may take; the context may end it sooner. Default 10 s.
	Time time.Duration
	// Steps is how much work it may do: some ten to a loop's iteration, one per 256 bytes of text
	// touched. Default 2^31, far more than fits in Time: for tests that must not depend on a clock.
	Steps int
	// Memory is how many bytes of strings and lists it may make, freed or not. Default 128 MiB.
	Memory int
	// Text is how many bytes the result, or any one string on the way to it, may have. Default 32 MiB. It
	// also bounds how long a single operation takes, and so how late a rendering notices that its time is
	// up.
	Text int
	// Calls is how deep macros may call each other, and values they put together may nest. Default 256; Python's stack lets them nest about 200 deep.
	Calls int
}

func (l Limits) withDefaults() Limits {
	def := func(field *int, v int) {
		if *field <= 0 {
			*field = v
		}
	}
	if l.Time <= 0 {
		l.Time = 10 * time.Second
	}
	def(&l.Steps, 1<<31-1)
	def(&l.Memory, 128<<20)
	def(&l.Text, 32<<20)
	def(&l.Calls, 256)
	return l
}

// budget is what is left of the limits. Everything that loops or allocates draws on it, so that no
// template takes more: the rendering's own goroutine counts and stops, nothing has to be killed.
type budget struct {
	ctx    context.Context
	limits Limits
	fuel   int // work until the context is looked at again
	steps  int // work after that
	memory int
	calls  int // calls and iterators that are active
}

const checkEvery = 1 << 12

func newBudget(ctx context.Context, l Limits) budget {
	return budget{ctx: ctx, limits: l, steps: l.Steps, memory: l.Memory}
}

// step counts n units of work.
func (b *budget) step(n int) error {
	if b.fuel -= n; b.fuel >= 0 {
		return nil
	}
	return b.refuel()
}

func (b *budget) refuel() error {
	if err := b.ctx.Err(); err != nil {
		return &LimitError{"rendering did not end in time", err}
	}
	for b.fuel < 0 {
		if b.steps <= 0 {
			return &LimitError{fmt.Sprintf("more than %d steps", b.limits.Steps), nil}
		}
		grant := min(b.steps, max(checkEvery, -b.fuel))
		b.steps -= grant
		b.fuel += grant
	}
	return nil
}

// touch counts the work of reading n bytes.
func (b *budget) touch(n int) error { return b.step(1 + n>>8) }

// alloc counts n bytes that are about to be made, and the work of filling them.
func (b *budget) alloc(n int) error {
	if n < 0 || n > b.memory {
		return &LimitError{fmt.Sprintf("more than %d bytes of values", b.limits.Memory), nil}
	}
	b.memory -= n
	return b.touch(n)
}

// allocText counts a string of n bytes that is about to be made.
func (b *budget) allocText(n int) error {
	if n < 0 || n > b.limits.Text {
		return &LimitError{fmt.Sprintf("a text of more than %d bytes", b.limits.Text), nil}
	}
	return b.alloc(n)
}

// fits reports whether count texts of size bytes, or fewer bytes if size is negative, are within a text.
func (b *budget) fits(count, size int) bool {
	return size <= 0 || count <= b.limits.Text/size
}

// items counts a list of n items that is about to be made.
func (b *budget) items(n int) error {
	if n < 0 || n > b.memory/itemSize {
		return b.alloc(-1)
	}
	return b.alloc(n * itemSize)
}

const itemSize = 24 // an interface, and the word it may point to

// text builds a string within a budget.
type text struct {
	budget *budget
	b      strings.Builder
}

func (t *text) write(s string) error {
	if t.b.Len()+len(s) > t.budget.limits.Text {
		return t.budget.allocText(-1)
	}
	if err := t.budget.alloc(len(s)); err != nil {
		return err
	}
	t.b.WriteString(s)
	return nil
}

func (t *text) String() string { return t.b.String() }

// enter counts one level of calls; it must be left with leave if there was no error.
func (b *budget) enter() error {
	if b.calls++; b.calls > b.limits.Calls {
		b.calls--
		return &LimitError{fmt.Sprintf("calls nest deeper than %d", b.limits.Calls), nil}
	}
	return nil
}

func (b *budget) leave() { b.calls-- }
