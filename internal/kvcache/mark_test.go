package kvcache

import (
	"bytes"
	"testing"

	"github.com/foretoken/foretoken/internal/tensor"
)

// marked checks how many positions of sequences are marked.
func (w *world) marked(when string, want ...int) {
	w.check()
	for i, n := range want {
		if got := w.pool.Marked(w.tables[i]); got != n {
			w.Fatalf("%s: %d positions of sequence %d are marked, want %d", when, got, i, n)
		}
	}
}

// Marks are of pages: they come with a prefix that is shared, stay with the
// tree, and are gone when the page is used for something else.
func TestMarksAreShared(t *testing.T) {
	w := newWorld(t, plain, 5, 0, 3, TreeOptions{})
	one, two := w.sequences[0], w.sequences[1]
	w.begin(one, "abc")
	w.marked("nothing is marked", 0)
	w.pool.Mark(one.table, 40)
	w.marked("a page and a part", 40)
	w.pool.Mark(one.table, 33)
	w.marked("less than is marked", 40)
	w.begin(two, "abx")
	w.marked("two attached ab", 40, 40)
	for position, want := range map[int]bool{0: true, 63: true, 64: false, 96: false} {
		if got := w.pool.SharePage(one.table, two.table, position); got != want {
			t.Errorf("position %d: one page is %v, want %v", position, got, want)
		}
	}
	w.pool.Mark(two.table, 64+32)
	w.marked("two is ahead, in ab for both", 64, 96)
	w.release(one)
	w.begin(one, "abc")
	w.marked("one came back", 64, 96)

	w.release(one)
	w.release(two)
	w.begin(one, "pqrst") // all five pages
	w.marked("pages of others", 0)
	w.pool.Mark(one.table, 1000)
	w.marked("more than there is", 160)
}

// A page of the tree takes the place of an equal one with the mark that it has,
// more or less.
func TestMarksOfDuplicates(t *testing.T) {
	w := newWorld(t, plain, 32, 0, 2, TreeOptions{})
	one, two := w.sequences[0], w.sequences[1]
	for _, s := range w.sequences {
		if err := w.compute(s, w.spell("abc")...); err != nil {
			t.Fatal(err)
		}
	}
	w.pool.Mark(one.table, 40)
	w.insert(one)
	w.pool.Mark(two.table, 70)
	w.marked("each its own", 40, 70)
	w.insert(two)
	w.marked("the tree's", 40, 40)
}

// What is taken back of a sequence is not marked when it is computed anew, and
// others that share it keep their marks.
func TestMarksOfRewound(t *testing.T) {
	w := newWorld(t, plain, 8, 0, 2, TreeOptions{})
	one, two := w.sequences[0], w.sequences[1]
	w.begin(one, "abcd")
	w.begin(two, "abcd")
	w.pool.Mark(one.table, 128)
	if err := w.rewind(two, 70); err != nil { // page c is copied
		t.Fatal(err)
	}
	if err := w.compute(two, run('y', 58)...); err != nil {
		t.Fatal(err)
	}
	w.marked("into shared pages", 128, 70)
	w.pool.Mark(two.table, 128)
	if err := w.rewind(two, 100); err != nil {
		t.Fatal(err)
	}
	if err := w.compute(two, run('z', 28)...); err != nil {
		t.Fatal(err)
	}
	w.marked("into its own", 128, 100)
	if err := w.rewind(two, 96); err != nil {
		t.Fatal(err)
	}
	if err := w.compute(two, run('z', 3)...); err != nil {
		t.Fatal(err)
	}
	w.marked("between pages", 128, 96)
	w.pool.Mark(two.table, 99)
	if err := w.rewind(two, 99); err != nil {
		t.Fatal(err)
	}
	w.marked("nothing", 128, 99)
}

// What is imported is computed by the target at least.
func TestImportIsNotMarked(t *testing.T) {
	pool := newPool(t, plain, tensor.F32, 64)
	var table Table
	if err := pool.Grow(&table, 64); err != nil {
		t.Fatal(err)
	}
	pool.Mark(&table, 64)
	var buffer bytes.Buffer
	if err := pool.Export(&table, 64, &buffer); err != nil {
		t.Fatal(err)
	}
	pool.Release(&table)
	if _, err := pool.Import(&table, &buffer); err != nil {
		t.Fatal(err)
	}
	if n := pool.Marked(&table); n != 0 {
		t.Errorf("%d positions are marked", n)
	}
}
